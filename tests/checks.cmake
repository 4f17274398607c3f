# Tests that are not Catch2 programs: of the installed package, of the sources, of what the compiler made of them.
if(QUANTRAIN_INSTALL)
  add_test(NAME consumer_project
           COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/consumer
                   -D WORK=${CMAKE_CURRENT_BINARY_DIR}/consumer -D VERSION=${PROJECT_VERSION}
                   -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER} -D CONFIG=$<CONFIG>
                   -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
endif()
