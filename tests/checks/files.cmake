# Included by other checks. project_files(result regex): sets `result` to the paths of the repository's files that match
# the regex, relative to SOURCE. With git these are all files that it does not ignore. Otherwise, such as in an unpacked
# archive, hidden folders and build/ are left out.
function(project_files result regex)
  execute_process(COMMAND git -C ${SOURCE} -c core.quotepath=off ls-files --cached --others --exclude-standard
                  OUTPUT_VARIABLE listed RESULT_VARIABLE status ERROR_QUIET)
  string(REPLACE "\n" ";" listed "${listed}")
  if(NOT status EQUAL 0 OR NOT listed)
    file(GLOB_RECURSE listed LIST_DIRECTORIES false RELATIVE ${SOURCE} ${SOURCE}/*)
    list(FILTER listed EXCLUDE REGEX "^build/|^\\.git/|^\\.cache/")
  endif()
  list(FILTER listed INCLUDE REGEX "${regex}")
  set(files)
  foreach(file IN LISTS listed)
    if(EXISTS ${SOURCE}/${file})  # git also lists files that were deleted, but are not committed yet
      list(APPEND files ${file})
    endif()
  endforeach()
  if(NOT files)
    message(FATAL_ERROR "${SOURCE} has no files that match ${regex}")
  endif()
  set(${result} ${files} PARENT_SCOPE)
endfunction()
