# SPDX-License-Identifier: Apache-2.0
# Finds every third-party library once and makes one imported target of each.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(HDF5 1.10 REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)  # the DEFLATE stage of KVTC
if(KVS_STATIC_HDF5)
  # Debian's shared library links curl for remote files, and curl links Kerberos and LDAP. The static library has these
  # files in objects of their own, which nothing refers to.
  find_library(KVS_HDF5_ARCHIVE NAMES libhdf5_serial.a libhdf5.a REQUIRED)
  find_library(SZIP_LIBRARY sz REQUIRED)
  set_target_properties(hdf5::hdf5 PROPERTIES IMPORTED_LOCATION ${KVS_HDF5_ARCHIVE}
    INTERFACE_LINK_LIBRARIES "${SZIP_LIBRARY};ZLIB::ZLIB;m;${CMAKE_DL_LIBS}")
endif()
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
# Debian's oneDNN package file requires OpenCL headers that a CPU build does not use, so it is not used here.
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(kvs_dnnl INTERFACE)
target_include_directories(kvs_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(kvs_dnnl INTERFACE ${DNNL_LIBRARY})
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(LAPACKE REQUIRED IMPORTED_TARGET lapacke)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
# SentencePiece's package file also links the trainer, which is not used here.
find_path(SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h REQUIRED)
find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
add_library(kvs_sentencepiece INTERFACE)
target_include_directories(kvs_sentencepiece SYSTEM INTERFACE ${SENTENCEPIECE_INCLUDE_DIR})
target_link_libraries(kvs_sentencepiece INTERFACE ${SENTENCEPIECE_LIBRARY})
find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)
add_library(kvs_valijson INTERFACE)
target_include_directories(kvs_valijson SYSTEM INTERFACE ${VALIJSON_INCLUDE_DIR})
target_compile_definitions(kvs_valijson INTERFACE VALIJSON_USE_EXCEPTIONS=1)  # else valijson aborts
# MPI is used only by runs of several ranks.
find_package(MPI COMPONENTS C QUIET)
if(NOT MPI_C_FOUND)
  message(STATUS "No Open MPI (libopenmpi-dev): the programs run as one process each")
endif()

add_library(kvs_pocketfft INTERFACE)
target_include_directories(kvs_pocketfft SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/third_party/pocketfft)
target_compile_definitions(kvs_pocketfft INTERFACE POCKETFFT_NO_MULTITHREADING)  # callers already use threads

if(KVS_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "KVS_CUDA=ON needs nvcc on PATH; configure the preset cpu to build without it")
  endif()
  # Machine code for A100 and H100/H200; PTX of the latter for later GPUs. This must be set first: CMake's own default
  # is an architecture that nvcc 13 no longer supports.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  # CUDA sources take the standard from CMAKE_CXX_STANDARD, but CMake 3.25 does not know nvcc 13's flag for C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  find_package(CUDAToolkit 12 REQUIRED)

  # Only cuDNN's headers are needed: libcudnn is loaded at run time. scripts/setup.sh fetches the front end.
  set(KVS_WITH_CUDNN OFF)
  if(NOT KVS_CUDNN STREQUAL "OFF")
    find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h PATH_SUFFIXES cudnn-frontend-1.32.0/include
      HINTS $ENV{KVS_CACHE} $ENV{XDG_CACHE_HOME}/kvspectrum $ENV{HOME}/.cache/kvspectrum)
    if(CUDNN_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR)
      set(KVS_WITH_CUDNN ON)
    elseif(KVS_CUDNN STREQUAL "AUTO")
      message(STATUS "No headers of cuDNN and its front end: attention by the own kernels alone (scripts/setup.sh fetches them)")
    else()
      message(FATAL_ERROR "KVS_CUDNN=ON needs cudnn.h and cudnn_frontend.h; run scripts/setup.sh or set CUDNN_INCLUDE_DIR and CUDNN_FRONTEND_INCLUDE_DIR")
    endif()
  endif()
endif()
