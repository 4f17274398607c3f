# quantrain_part(option package debian what): whether a part is built that needs a package of its own. ON: it is, and
# that the package is not there is an error; OFF: it is not; AUTO, as long as nobody says: where the package is found.
# As a subdirectory of another project, and without training, nothing is built that was not asked for. Sets the option
# to ON or OFF for those who read it.
function(quantrain_part option package debian what)
  set(unless_said OFF)
  if(PROJECT_IS_TOP_LEVEL)
    set(unless_said AUTO)
  endif()
  set(${option} ${unless_said} CACHE STRING "Build ${what}: ON, OFF, or AUTO (where ${package} is found)")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(TOUPPER "${${option}}" wanted)
  set(built OFF)
  if(QUANTRAIN_TRAINING AND wanted)
    find_package(${package} QUIET)
    if(${package}_FOUND)
      set(built ON)
    elseif(wanted STREQUAL "AUTO")
      message(STATUS "Without ${what}: ${package} was not found (${debian} in Debian)")
    else()
      message(FATAL_ERROR "${option} is ${${option}}, and ${package}, which ${what} need, was not found: install it "
                          "(${debian} in Debian), say where it is (${package}_DIR), or set ${option} to AUTO or OFF")
    endif()
  endif()
  set(${option} ${built} PARENT_SCOPE)
endfunction()
