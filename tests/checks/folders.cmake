# cmake -D SOURCE=<repository> -P folders.cmake
# Every folder of more than ten files has a README.md, which says what belongs there and how to add a file.
cmake_minimum_required(VERSION 3.25)
set(most 10)

set(folders)
foreach(room framework layers quant examples tests benchmarks fuzz docs)
  file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/${room}/*)
  foreach(file IN LISTS files)
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND folders ${folder})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES folders)

set(bad 0)
foreach(folder IN LISTS folders)
  file(GLOB files LIST_DIRECTORIES false ${SOURCE}/${folder}/*)
  # Data of tests and seeds of fuzzers do not count.
  list(FILTER files EXCLUDE REGEX "_seed_corpus/|\\.(json|safetensors|npy|png)$")
  list(LENGTH files count)
  if(count GREATER most AND NOT EXISTS ${SOURCE}/${folder}/README.md)
    message(NOTICE "${folder} has ${count} files and needs a README.md")
    math(EXPR bad "${bad} + 1")
  endif()
endforeach()
if(bad GREATER 0)
  message(FATAL_ERROR "${bad} folders without README.md")
endif()
