# quantrain_part(option package debian what): decides whether to build a part of the project that needs a package, and
# sets the option to ON or OFF in the caller. `debian` is the package's name in Debian, and `what` describes the part;
# both are for messages. The user can set the option to ON, OFF or AUTO. ON builds the part, and a missing package is an
# error. OFF does not build it. AUTO builds it if the package is found. The default is AUTO, or OFF in a subdirectory of
# another project. If QUANTRAIN_TRAINING is OFF, no part is built.
function(quantrain_part option package debian what)
  set(unless_said OFF)
  if(PROJECT_IS_TOP_LEVEL)
    set(unless_said AUTO)
  endif()
  set(${option} ${unless_said} CACHE STRING "Build ${what}: ON, OFF, or AUTO (if ${package} is found)")
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
                          "(${debian} in Debian), say where it is (${package}_ROOT), or set ${option} to AUTO or OFF")
    endif()
  endif()
  set(${option} ${built} PARENT_SCOPE)
endfunction()
