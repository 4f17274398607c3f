# cmake -D SOURCE=<repository> -P folders.cmake
# Every folder of more than ten files has a README.md, which says what belongs there and how to add a file.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)
set(most 10)

# Data of tests and seeds of fuzzers do not count.
project_files(all "/")
list(FILTER all EXCLUDE REGEX "_seed_corpus/|\\.(json|safetensors|npy|png|tflite)$")
set(folders ${all})
list(TRANSFORM folders REPLACE "/[^/]*$" "")
list(REMOVE_DUPLICATES folders)

set(bad 0)
foreach(folder IN LISTS folders)
  set(files ${all})
  list(FILTER files INCLUDE REGEX "^${folder}/[^/]*$")
  list(LENGTH files count)
  if(count GREATER most AND NOT EXISTS ${SOURCE}/${folder}/README.md)
    message(NOTICE "${folder} has ${count} files and needs a README.md")
    math(EXPR bad "${bad} + 1")
  endif()
endforeach()
if(bad GREATER 0)
  message(FATAL_ERROR "${bad} folders without README.md")
endif()
