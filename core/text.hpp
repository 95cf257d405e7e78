// SPDX-License-Identifier: Apache-2.0
// Internal: text from outside (paths, names, bytes of a file) made fit for an error message, numbers in words, and UTF-8
// checked.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vitro {

// `text` in printable ASCII: every other byte, quotes and backslashes are written \n \t \r \" \\ or \xNN.
std::string escaped(std::string_view text);

// The same in double quotes. What exceeds `limit` bytes of input is cut and marked by "..." after the closing quote.
std::string quoted(std::string_view text, std::size_t limit = 256);

// The shortest decimal text that reads back as the number, in every locale (std::to_chars).
std::string decimal(float number);

// How many bytes the UTF-8 character at the start of `text` has (1 to 4); 0 if there is none: text is empty, cut off, overlong,
// a surrogate, above U+10FFFF, or a stray byte.
std::size_t utf8_length(std::string_view text) noexcept;
bool is_utf8(std::string_view text) noexcept;

}  // namespace vitro
