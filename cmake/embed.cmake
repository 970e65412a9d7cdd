# cmake -DOUTPUT=FILE.c -DINPUTS="name=path|path;..." -P embed.cmake
# Writes files as constants of C: `const char NAME[]`, with a NUL at the end. Several files of one
# name follow each other.
set(text "/* Made by cmake/embed.cmake. */\n")
foreach(input IN LISTS INPUTS)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${input}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "|" ";" paths "${CMAKE_MATCH_2}")
  set(bytes "")
  foreach(path IN LISTS paths)
    file(READ "${path}" more HEX)
    string(APPEND bytes "${more}")
  endforeach()
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  string(APPEND text "extern const char ${name}[];\nconst char ${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
