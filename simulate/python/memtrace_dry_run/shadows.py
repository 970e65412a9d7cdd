"""What the host knows of the values of tensors on the device, by storage.

A shadow is a storage on the host, of as many bytes as the storage on the device, so that every view of one is
the same view of the other. It lives as long as its original: the table holds only weak references, which change
nothing that PyTorch decides by counting references. Small tensors only: MAX_ELEMENTS, and floating-point values that
do not follow from others (that are drawn, filled or copied from the host) up to MAX_FLOAT_ELEMENTS, because parameters
are such values.

`made` says how a value came to be: KNOWN; CHOSEN, an index that was made up, that an unknown value is a number, or what
follows from one of these; RECEIVED, this rank's value in place of another rank's, or what follows from one; GUESSED, the
outcome of a comparison with unknown values, a number that the device draws and the host does not compute, or what
follows from one of these. A storage of whole numbers of which only a part was written is GUESSED until all of it is, as
torch.empty is filled."""
import functools
import weakref

import torch

from . import fillers

KNOWN, CHOSEN, RECEIVED, GUESSED = 0, 1, 2, 3
MAX_FLOAT_ELEMENTS = 1 << 18
MAX_ELEMENTS = 1 << 22
SWEEP_BYTES = 64 << 20
MAX_TYPES = 50  # that unread values take in turn

_shadows = {}  # address of a storage's structure: Shadow
_floats = set()  # addresses in `_shadows` of floating-point values that `forget_changed` looks at
_bytes_since_sweep = 0
have_gradients = False  # whether autograd's engine may have made or got a gradient


class _Structure:
    """A weak reference to a storage: until it is gone, no other storage has its address."""

    __slots__ = ("reference",)

    def __init__(self, reference):
        self.reference = reference

    def __del__(self, free=torch.UntypedStorage._free_weak_ref):  # no globals are left at the end
        free(self.reference)


class Places:
    """Storages that a graph writes to."""

    def __init__(self):
        self._structures = {}

    def add(self, t):
        """The graph writes to T."""
        storage = t.untyped_storage()
        if storage._cdata not in self._structures:
            self._structures[storage._cdata] = _Structure(storage._weak_ref())
        self._doubt(storage._cdata)

    def doubt(self):
        """Their values are guesses from now on."""
        for address in self._structures:
            self._doubt(address)

    @staticmethod
    def _doubt(address):
        shadow = _shadows.get(address)
        if shadow is not None:
            shadow.made = GUESSED


class Shadow(_Structure):
    __slots__ = ("_storage", "_made", "later", "rest", "tensors", "may_be_gradient")

    def __init__(self, reference, storage, made):
        super().__init__(reference)
        self._storage, self._made = storage, made
        self.later = None  # the _Later that fills the whole storage when it is read
        self.rest = None  # the part that nobody has written to, if there is one
        self.tensors = []  # references to the tensors that may be gradients
        self.may_be_gradient = False  # the program may have written to a gradient by another tensor

    @property
    def made(self):
        return self._made if self.rest is None else GUESSED

    @made.setter
    def made(self, made):
        self._made = made

    @property
    def storage(self):
        later = self.later  # another thread may change it
        if later is not None:
            later.fill(self._storage)
            if self.later is later:
                self.later = None  # not before: a computation that failed is tried again
        return self._storage

    @storage.setter
    def storage(self, storage):
        self._storage = storage


class _Later:
    """What becomes the values of T, a whole storage: what FUNCTION returns, as each of TYPES in turn. TYPES is None if FUNCTION
    may not return the same whenever it is called."""

    __slots__ = ("function", "types", "place")

    def __init__(self, t, function, types):
        self.function, self.types = function, types
        self.place = t.size(), t.stride(), t.dtype

    def values(self):
        values = self.function()
        for dtype in self.types or ():
            values = values.to(dtype)
        return values

    def fill(self, storage):
        size, stride, dtype = self.place
        torch.empty(0, dtype=dtype, device="cpu").set_(storage, 0, size, stride).copy_(self.values())

    def is_copied(self, to, source):
        """Whether a copy of SOURCE, whose values these are, to TO needs not read them."""
        return (self.types is not None and len(self.types) < MAX_TYPES and self.place == (source.size(), source.stride(), source.dtype)
                and to.size() == source.size() and not source.is_conj() and not source.is_neg())


class _Rest:
    """The elements of a storage that nobody has written to."""

    def __init__(self, t):
        self.dtype = t.dtype
        self.elements = torch.ones(t.untyped_storage().nbytes() // t.element_size(), dtype=torch.bool, device="cpu")
        self.count = self.elements.numel()

    def is_written(self, t):
        """T is written to; whether that was all that was left. Elements of T that overlap count only once."""
        if t.dtype != self.dtype:
            return False
        part = self.elements.as_strided(t.size(), t.stride(), t.storage_offset())
        self.count -= int(torch.count_nonzero(part))
        part.zero_()
        if self.count <= 0:
            self.count = int(torch.count_nonzero(self.elements))
        return self.count == 0


def _address(t):
    """The address of T's storage. `untyped_storage` would give the storage a Python object, which counts as a reference to it:
    autograd's engine adds in place only to what nobody else uses, and would allocate each sum of such gradients."""
    return torch._C._storage_address(t)


def may_be_known(t):
    """Whether T is small enough for values that follow from others."""
    return t.numel() <= MAX_ELEMENTS


def exists(t):
    """Whether T's storage has a shadow. Unlike `of`, runs no operator."""
    return t.layout is torch.strided and _address(t) in _shadows


def is_small(t):
    """Whether T is small enough for values that follow from no others."""
    limit = MAX_FLOAT_ELEMENTS if t.is_floating_point() or t.is_complex() else MAX_ELEMENTS
    return t.numel() <= limit


def of(t):
    """The Shadow of a tensor on the device, or None."""
    shadow = _shadows.get(_address(t))
    if shadow is None:
        return None
    storage = t.untyped_storage()
    return shadow if shadow._storage.nbytes() == storage.nbytes() else _resized(t, storage, shadow)


def _resized(t, storage, shadow):
    """Storages that grow keep what they had (`resize_`, out=); those that shrink lose it."""
    had, size_bytes = shadow.storage.nbytes(), storage.nbytes()
    if size_bytes < had or size_bytes > MAX_ELEMENTS * 8:
        del _shadows[storage._cdata]
        return None
    host = _whole(t, size_bytes)
    host[:had] = torch.empty(0, dtype=torch.uint8, device="cpu").set_(shadow.storage)
    shadow.storage = host.untyped_storage()
    shadow.made, shadow.rest = GUESSED if had else shadow.made, None
    return shadow


def view(t, shadow):
    """T's values on the host; writing to them changes the shadow."""
    host = torch.empty(0, dtype=t.dtype, device="cpu").set_(shadow.storage, t.storage_offset(), t.size(), t.stride())
    host = host.conj() if t.is_conj() else host
    return torch._neg_view(host) if t.is_neg() else host


def forget(t):
    _shadows.pop(_address(t), None)


def shrink(storage, size_bytes):
    """STORAGE gets SIZE_BYTES: a smaller one loses its values, also if it grows again before anything reads them."""
    if size_bytes < storage.nbytes():
        _shadows.pop(storage._cdata, None)


def keep(t, values, made):
    """VALUES, a tensor on the host of T's shape, become T's."""
    shadow = of(t)
    if shadow is None:
        shadow = _new(t, made)
        if shadow is None:
            return
    else:
        covers = t.numel() * t.element_size() == shadow._storage.nbytes()
        shadow.made = made if covers else max(made, shadow._made)
        if covers:
            shadow.later = shadow.rest = None
    if shadow.rest is not None and shadow.rest.is_written(t):
        shadow.rest = None
    view(t, shadow).copy_(values)


def keep_later(t, function, made, is_fixed=False):
    """What FUNCTION returns becomes T's when something reads it: most numbers that a program draws are never read. IS_FIXED: it
    returns the same whenever it is called, so that a copy of T need not read it either; all copies share one call."""
    _keep_later(t, _Later(t, functools.lru_cache(None)(function), ()) if is_fixed else _Later(t, function, None), made)


def _keep_later(t, later, made):
    shadow = of(t) or _new(t, made)
    if shadow is None:
        return
    if t.numel() * t.element_size() != shadow._storage.nbytes() or t.is_conj() or t.is_neg():
        keep(t, later.values(), made)
        return
    shadow.made, shadow.rest, shadow.later = made, None, later


def copy(to, source, shadow):
    """The values of SOURCE, whose Shadow this is, become those of TO, a tensor on the device."""
    later = shadow.later
    if later is not None and later.is_copied(to, source):
        types = later.types if to.dtype is source.dtype else later.types + (source.dtype,)
        _keep_later(to, _Later(to, later.function, types), shadow.made)
    else:
        keep(to, view(source, shadow), shadow.made)


def _new(t, made):
    """A shadow without values of T; None if the storage is too large, or T is a part of floating-point values that nobody knows."""
    global _bytes_since_sweep
    storage = t.untyped_storage()
    size_bytes = storage.nbytes()
    floats = t.is_floating_point() or t.is_complex()
    if not t.numel() and size_bytes:
        return None
    if size_bytes > MAX_ELEMENTS * t.element_size() or (floats and size_bytes != t.numel() * t.element_size()):
        return None
    _bytes_since_sweep += size_bytes + 256
    if _bytes_since_sweep > SWEEP_BYTES:
        sweep()
    is_part = size_bytes != t.numel() * t.element_size()
    host = _whole(t, size_bytes) if is_part else torch.empty(size_bytes, dtype=torch.uint8, device="cpu")
    shadow = Shadow(storage._weak_ref(), host.untyped_storage(), made)
    if is_part:
        shadow.rest = _Rest(t)
    _shadows[storage._cdata] = shadow
    if floats and not t.requires_grad:
        watch(t)
        shadow.may_be_gradient = have_gradients and _is_shared(storage)
    return shadow


def _whole(t, size_bytes):
    """A storage on the host whose values, of T's type, nobody knows, as bytes. The last one may be cut off."""
    host = torch.zeros(-(-size_bytes // t.element_size()), dtype=t.dtype, device="cpu")
    fillers.fill(host)
    found = host.view(torch.uint8)
    return found if found.numel() == size_bytes else found[:size_bytes].clone()


def _is_shared(storage):
    """Whether several tensors have the storage. Each of them, and STORAGE, counts as a user of it."""
    count = getattr(torch._C, "_storage_Use_Count", None) # since PyTorch 2.1
    return count is None or count(storage._cdata) > 2


def watch(t):
    """T may be a gradient."""
    address = _address(t)
    shadow = _shadows.get(address)
    if shadow is not None and (t.is_floating_point() or t.is_complex()):
        if not any(reference() is t for reference in shadow.tensors): # a program may assign the same one in each step
            shadow.tensors.append(weakref.ref(t))
        _floats.add(address)


def float_versions():
    """(tensor that may be a gradient, to which autograd's engine adds, by reference, and how often it has been written to)."""
    versions = []
    for address in list(_floats):
        shadow = _shadows.get(address)
        if shadow is not None and shadow.may_be_gradient: # written to through `.data`, perhaps, whose versions are its own
            shadow = None
            del _shadows[address]
        alive = [] if shadow is None else [(reference, t._version) for reference, t in ((r, r()) for r in shadow.tensors) if t is not None]
        versions += alive
        if not alive:
            _floats.discard(address)
        elif len(alive) < len(shadow.tensors):
            shadow.tensors = [reference for reference, _ in alive]
    return versions


def forget_changed(versions):
    """Forgets what has been written to since VERSIONS."""
    for reference, version in versions:
        t = reference()
        if t is not None and t._version != version:
            forget(t)


def sweep():
    """Drops what belongs to storages that are no more."""
    global _bytes_since_sweep
    _bytes_since_sweep = 0
    expired = torch.UntypedStorage._expired
    for address in [a for a, s in list(_shadows.items()) if expired(s.reference)]:
        _shadows.pop(address, None)
        _floats.discard(address)


def count():
    return len(_shadows)
