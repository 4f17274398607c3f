# CPack makes three Debian packages from the preset `packages`: libquantrain-runtime and libquantrain with the shared
# libraries, and libquantrain-dev with everything else. dpkg-shlibdeps (package dpkg-dev) finds the dependencies of the
# shared libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME quantrain)
set(CPACK_PACKAGE_VENDOR quantrain)
set(CPACK_PACKAGE_CONTACT "the maintainers of quantrain <quantrain@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime training dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    ${PROJECT_BINARY_DIR}/framework ${PROJECT_BINARY_DIR}/layers ${PROJECT_BINARY_DIR}/quant)
set(exactly "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libquantrain-runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runs integer networks that quantrain made")
set(CPACK_DEBIAN_TRAINING_PACKAGE_NAME libquantrain)
set(CPACK_DEBIAN_TRAINING_PACKAGE_DEPENDS "libquantrain-runtime ${exactly}")
set(CPACK_COMPONENT_TRAINING_DESCRIPTION "Trains neural networks with quantization awareness and converts them to integers")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libquantrain-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libquantrain-runtime ${exactly}, libquantrain ${exactly}, libtbb-dev, libxtensor-dev, zlib1g-dev")
if(QUANTRAIN_PNG)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libpng-dev")
endif()
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, CMake package and pkg-config files of quantrain")
include(CPack)
