# The installed package: libraries, headers under include/quantrain with the repository's tree, and what find_package
# needs. Headers of the insides of kernels and of lowering stay here.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quantrain)

install(TARGETS quantrain_framework quantrain_layers quantrain_quant EXPORT quantrainTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY framework layers quant
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quantrain
        FILES_MATCHING PATTERN "*.hpp"
        PATTERN "framework/kernels/*/*" EXCLUDE
        PATTERN "framework/kernels/dispatch.hpp" EXCLUDE
        PATTERN "framework/kernels/table.hpp" EXCLUDE
        PATTERN "framework/kernels/tables.hpp" EXCLUDE
        PATTERN "quant/lowering/context.hpp" EXCLUDE
        PATTERN "quant/lowering/weights.hpp" EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/quantrain)

install(EXPORT quantrainTargets NAMESPACE quantrain:: DESTINATION ${package_dir})
configure_package_config_file(cmake/quantrainConfig.cmake.in ${PROJECT_BINARY_DIR}/quantrainConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quantrainConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/quantrainConfig.cmake ${PROJECT_BINARY_DIR}/quantrainConfigVersion.cmake
        DESTINATION ${package_dir})
