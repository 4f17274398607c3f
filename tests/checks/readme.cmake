# cmake -D SOURCE=<repository> -P readme.cmake
# The program in README.md is the one that the build compiles, and what it links to exists.
cmake_minimum_required(VERSION 3.25)

file(READ ${SOURCE}/README.md readme)
file(READ ${SOURCE}/examples/readme.cpp program)
string(FIND "${readme}" "```cpp\n${program}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "the program in README.md is not examples/readme.cpp")
endif()

# Brackets would keep a list from being split.
string(REPLACE "](" "@(" links "${readme}")
string(REGEX MATCHALL "@\\([^):]+\\)" links "${links}")
foreach(link IN LISTS links)
  string(REGEX REPLACE "@\\((.*)\\)" "\\1" path "${link}")
  if(NOT EXISTS "${SOURCE}/${path}")
    message(FATAL_ERROR "README.md links to ${path}, which does not exist")
  endif()
endforeach()
