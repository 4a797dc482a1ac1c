# Writes the files of INPUTS (separated by |), one after the other, as a C byte array to OUTPUT.
# Called at build time: cmake -DINPUTS=… -DOUTPUT=… -P embed.cmake
string(REPLACE "|" ";" inputs "${INPUTS}")
set(bytes "")
foreach(input IN LISTS inputs)
  file(READ "${input}" hex HEX)
  string(APPEND bytes "${hex}")
endforeach()
string(LENGTH "${bytes}" digits)
math(EXPR length "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "#include \"store/admin/functions.h\"\n
const unsigned char mfs_functions_text[] = {\n${bytes}0};\nconst size_t mfs_functions_len = ${length};\n")
