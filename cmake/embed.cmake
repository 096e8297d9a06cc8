# SPDX-License-Identifier: Apache-2.0
# Writes a header that holds a text file as a string_view. Splits raw literals below the compilers' length limit.
file(READ ${INPUT} text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "R\"kvs(${piece})kvs\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUTPUT} "#pragma once\n#include <string_view>\n\nnamespace kvs::embedded {\ninline constexpr std::string_view ${VARIABLE} =\n${pieces};\n}  // namespace kvs::embedded\n")
