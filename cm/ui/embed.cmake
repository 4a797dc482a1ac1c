# cmake -DFROM=FOLDER -DTO=HEADER -P embed.cmake: the page's files as arrays of bytes.
set(text "/* Made of the files of cm/ui by embed.cmake. */\n")
foreach(file page.html page.css page.js)
  file(READ ${FROM}/${file} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "[^a-z]" "_" name ${file})
  string(APPEND text "static const unsigned char mfs_ui_${name}[] = {${bytes}};\n")
endforeach()
file(WRITE ${TO} "${text}")
