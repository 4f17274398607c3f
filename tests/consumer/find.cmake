# cmake -D quantrain_DIR=<folder of quantrainConfig.cmake> -D COMPONENTS=... -P find.cmake
# Fails if the package in the folder quantrain_DIR does not have the components.
cmake_minimum_required(VERSION 3.25)
find_package(quantrain 0.2 REQUIRED COMPONENTS ${COMPONENTS})
