# SPDX-License-Identifier: Apache-2.0
# kvs_library(NAME ...) defines a static library of every .cpp directly in this folder and in the sub-folders FOLDERS,
# except WITHOUT. SOURCES replaces that list. PUBLIC and PRIVATE are its links.
function(kvs_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;SOURCES;WITHOUT;PUBLIC;PRIVATE" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    foreach(folder IN LISTS ARG_FOLDERS)
      file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
      list(APPEND sources ${more})
    endforeach()
    if(ARG_WITHOUT)
      list(REMOVE_ITEM sources ${ARG_WITHOUT})
    endif()
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE kvs_flags ${ARG_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_PUBLIC})
  endif()
endfunction()

# kvs_embed(TARGET VARIABLE FILE) gives TARGET the bytes of FILE as `const std::string_view kvs::embedded::VARIABLE` in
# the header "embedded/VARIABLE.h".
function(kvs_embed target variable file)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/generated/embedded/${variable}.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${header} -DVARIABLE=${variable}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
endfunction()
