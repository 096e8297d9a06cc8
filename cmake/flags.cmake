# SPDX-License-Identifier: Apache-2.0
# Defines compiler flags as interface targets. Nothing sets global flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# A third of a compilation is headers: batches of 24 files take 0.8 of the time of batches of 8.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)

find_program(KVS_CCACHE ccache)
if(KVS_CCACHE)
  # ccache sees paths below the tree as relative paths: two presets share the result of an equal compilation.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${KVS_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_library(kvs_flags INTERFACE)
# -fno-math-errno and -fno-trapping-math let loops with exp() and comparisons vectorise. Neither flag changes a result.
target_compile_options(kvs_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wno-unknown-pragmas;-fno-math-errno;-fno-trapping-math>)
# GCC 12 reports std::string + std::string as overlapping copies (GCC bug 105329).
target_compile_options(kvs_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
# clang 14 warns of each simd loop that it does not vectorise.
target_compile_options(kvs_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>)
if(CMAKE_UNITY_BUILD)  # GCC treats every source file that a batch includes as a header
  target_compile_options(kvs_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(KVS_SANITIZE)
  # A target with the property KVS_PLAIN is linked with the sanitizers' libraries, but not instrumented.
  set(instrumented $<NOT:$<BOOL:$<TARGET_PROPERTY:KVS_PLAIN>>>)
  # With sanitizers, GCC 12 reports values of its own library as uninitialised.
  target_compile_options(kvs_flags INTERFACE
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,${instrumented}>:-Wno-maybe-uninitialized>)
endif()
if(KVS_WERROR)
  target_compile_options(kvs_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION)  # the link sees all definitions of a type, which must be equal
  target_link_options(kvs_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wodr;-Werror=odr>)
endif()
# The oldest x86-64 processors are of level v3 (AVX2, FMA). A target for others sets its property KVS_MARCH. Other
# processors get the compiler's default.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(KVS_X86_64 ON)
  set(march $<TARGET_PROPERTY:KVS_MARCH>)
  target_compile_options(kvs_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=$<IF:$<BOOL:${march}>,${march},x86-64-v3>>)
endif()
if(KVS_SANITIZE)
  target_compile_options(kvs_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,${instrumented}>:-fsanitize=address,undefined,float-cast-overflow;-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(kvs_flags INTERFACE -fsanitize=address,undefined)
endif()
if(KVS_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "KVS_FUZZ=ON needs clang++; configure the preset fuzz")
  endif()
  target_compile_options(kvs_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
