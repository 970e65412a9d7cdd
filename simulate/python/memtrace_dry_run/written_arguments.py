"""Which arguments a kernel of Triton writes to, from its source: kernels are not built here.

A name counts that a call stores through, or that a variable was computed from that a call stores through. What
`load` returns is a value and no pointer. A function that is not Triton's own may write to all that it gets."""
import ast
import inspect
import textwrap

LANGUAGE = ("tl", "triton", "language", "libdevice")
BUILTINS = ("range", "min", "max", "len", "int", "float", "bool", "abs", "isinstance", "print")

_known = {}  # id of a kernel: the kernel, so that the id stays its own, and what was found


def of(kernel):
    """Names of parameters of KERNEL, a JITFunction; all of them where the source does not say."""
    found = _known.get(id(kernel))
    if found is None:
        found = _known[id(kernel)] = (kernel, _find(kernel))
    return found[1]


def _find(kernel):
    try:
        source = getattr(kernel, "src", None) or inspect.getsource(kernel.fn)
        names = _names_in(ast.parse(textwrap.dedent(source)))
    except (AttributeError, OSError, TypeError, SyntaxError):
        return set(kernel.arg_names)
    return names & set(kernel.arg_names)


def _names_in(tree):
    """The names that are written through, of parameters and of variables."""
    made_of, written = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _add(made_of, target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            _add(made_of, node.target, node.value)
        elif isinstance(node, ast.For):
            _add(made_of, node.target, node.iter)
        elif isinstance(node, ast.Call):
            written |= _written_by(node)
    todo = list(written)
    while todo:
        for name in made_of.get(todo.pop(), ()):
            if name not in written:
                written.add(name)
                todo.append(name)
    return written


def _add(made_of, target, value):
    pointers = _pointers(value)
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            made_of.setdefault(node.id, set()).update(pointers)


def _pointers(node):
    """Names in NODE, without those that are only loaded through."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Call) and _name_of(node.func) == "load":
        return set()
    return set().union(*map(_pointers, ast.iter_child_nodes(node)))


def _name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _written_by(call):
    name, arguments = _name_of(call.func), call.args + [keyword.value for keyword in call.keywords]
    if "store" in name or name.startswith("atomic"): # tl.store(pointer, value), descriptor.store(offsets, value)
        return _pointers(call.func).union(*map(_pointers, call.args[:1] or arguments))
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if name in BUILTINS or (isinstance(root, ast.Name) and root.id in LANGUAGE and not name.startswith("inline_asm")):
        return set()
    return set().union(*map(_pointers, arguments))
