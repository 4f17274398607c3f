# quantrain_library(name sources...): a library target with the project's warnings and language settings, under the
# alias quantrain::name.
function(quantrain_compile_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wundef -ffp-contract=off)
  if(QUANTRAIN_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(QUANTRAIN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${QUANTRAIN_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${QUANTRAIN_SANITIZE})
    if(QUANTRAIN_SANITIZE MATCHES "address")
      target_compile_definitions(${target} PRIVATE QUANTRAIN_SANITIZE_ADDRESS=1)
    elseif(QUANTRAIN_SANITIZE MATCHES "thread")
      target_compile_definitions(${target} PRIVATE QUANTRAIN_SANITIZE_THREAD=1)
    endif()
  endif()
endfunction()

function(quantrain_library name)
  add_library(${name} ${ARGN})
  add_library(quantrain::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME quantrain_${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/quantrain>)
  quantrain_compile_settings(${name})
endfunction()
