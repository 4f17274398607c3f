# cmake -D NM=<nm> -D FLOATS=<library of float kernels> -D INTEGERS=<that of integer kernels> -P symbols.cmake
# An inline function that a file of kernels/arch/ leaves out of line is merged by the linker with its namesakes of other
# files, and the copy that stays may use instructions that the CPU lacks. So each must belong to the file's own
# instruction set: a template on it.
cmake_minimum_required(VERSION 3.25)
set(arch_sse2 "xsimd::sse2")
set(arch_avx2 "xsimd::fma3<xsimd::avx2>")
set(arch_avx512bw "xsimd::avx512bw")
set(arch_avx512vnni "Avx512Vnni")

# check(library kind tables): a file of kernels/arch/float/ has the same name inside its library as its namesake of
# kernels/arch/integer/, and the same rule.
set(bad 0)
function(check library kind tables)
  execute_process(COMMAND ${NM} --demangle --print-file-name ${library}
                  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "," symbols "${symbols}")
  string(REPLACE "[" "(" symbols "${symbols}")
  string(REPLACE "]" ")" symbols "${symbols}")
  string(REPLACE "\n" ";" symbols "${symbols}")
  set(found 0)
  foreach(line IN LISTS symbols)
    if(NOT line MATCHES "[:/]([a-z0-9]+)\\.cpp\\.o: ?[0-9a-f]+ ([A-Za-z]) (.*)$")
      continue()
    endif()
    set(file ${CMAKE_MATCH_1})
    set(type ${CMAKE_MATCH_2})
    set(name "${CMAKE_MATCH_3}")
    if(NOT DEFINED arch_${file})
      continue()
    endif()
    if(name MATCHES "^quantrain::kernels::k[A-Za-z0-9]+${kind}Kernels$")
      math(EXPR found "${found} + 1")
    endif()
    # Weak functions; V and u are data, which no CPU lacks.
    if(type MATCHES "^[Ww]$")
      string(FIND "${name}" "${arch_${file}}" position)
      if(position EQUAL -1)
        message(NOTICE "${library}: ${file}.cpp.o: ${type} ${name}")
        math(EXPR bad "${bad} + 1")
      endif()
    endif()
  endforeach()
  if(NOT found EQUAL tables)
    message(FATAL_ERROR "${library}: expected ${tables} tables of ${kind} kernels, found ${found}")
  endif()
  set(bad ${bad} PARENT_SCOPE)
endfunction()

check(${FLOATS} Float 3)
check(${INTEGERS} Integer 4)
if(bad GREATER 0)
  message(FATAL_ERROR "${bad} inline functions that other files may have to share")
endif()
