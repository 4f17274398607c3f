# cmake -D SOURCE=<repository> -D TO=<folder> -D DOC=<its installed folder> -D INCLUDE=<installed headers>
#       -P installed_docs.cmake
# Copies the guide, the other pages and the examples to TO, in the folders that they have in the repository, with links
# that work where they are installed: links to headers lead to the installed headers, and links to what is not installed
# become plain text.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${TO})
foreach(name README.md CHANGELOG.md SECURITY.md LICENSE docs examples)
  file(COPY ${SOURCE}/${name} DESTINATION ${TO})
endforeach()

file(GLOB_RECURSE pages RELATIVE ${TO} ${TO}/*.md)
foreach(page IN LISTS pages)
  cmake_path(GET page PARENT_PATH folder)
  file(READ ${TO}/${page} text)
  # CMake does not split a list at semicolons within brackets, so no bracket may be in a match.
  string(REPLACE "](" "@@(" text "${text}")
  string(REGEX MATCHALL "@@\\([^):# \n]+[)#]" links "${text}")
  list(REMOVE_DUPLICATES links)
  foreach(link IN LISTS links)
    string(REGEX REPLACE "@@\\((.*)[)#]$" "\\1" path "${link}")
    cmake_path(SET target NORMALIZE "${folder}/${path}")
    if(EXISTS ${TO}/${target})
      continue()
    endif()
    string(REGEX REPLACE "([.+*])" "\\\\\\1" regex "${path}")
    if(target MATCHES "^(framework|layers|quant)/.*\\.hpp$")
      file(RELATIVE_PATH there ${DOC}/${folder} ${INCLUDE}/${target})
      string(REGEX REPLACE "@@\\(${regex}(#[^)]*)?\\)" "@@(${there})" text "${text}")
    else()
      string(REGEX REPLACE "\\[([^][@]*)@@\\(${regex}(#[^)]*)?\\)" "\\1" text "${text}")
    endif()
  endforeach()
  string(REPLACE "@@(" "](" text "${text}")
  file(WRITE ${TO}/${page} "${text}")
endforeach()
