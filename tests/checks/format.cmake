# cmake -D SOURCE=<repository> -P format.cmake
# The sources are formatted by clang-format 14; other versions differ in details. Lists (.inc) are not checked: they
# keep one entry on each line.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)
find_program(CLANG_FORMAT NAMES clang-format-14 clang-format)
if(CLANG_FORMAT)
  execute_process(COMMAND ${CLANG_FORMAT} --version OUTPUT_VARIABLE version)
endif()
if(NOT version MATCHES "version 14\\.")
  message(NOTICE "SKIPPED: clang-format 14 is not installed")
  return()
endif()
project_files(files "\\.(cpp|hpp|ipp)$|^quant/export/c99/core/.*\\.h$")
list(TRANSFORM files PREPEND ${SOURCE}/)
execute_process(COMMAND ${CLANG_FORMAT} --dry-run --Werror ${files} COMMAND_ERROR_IS_FATAL ANY)
