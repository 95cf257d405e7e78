// SPDX-License-Identifier: Apache-2.0
// The value's own operations and its printing; the parser is in json_parser.cpp.
#include "json.hpp"

#include "../core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace vitro {
namespace {

template <class T>
std::string shortest(T value) {
  char text[32];  // a double needs at most 24
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

void append_string(std::string_view text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
    } else {
      out += c;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

bool is_container(const Json& value) { return value.is(Json::Kind::array) || value.is(Json::Kind::object); }

void append(const Json& value, std::size_t indent, std::size_t level, std::string& out);

void line_break(std::size_t indent, std::size_t level, std::string& out) {
  out += '\n';
  out.append(indent * level, ' ');
}

void append_array(const Json& value, std::size_t indent, std::size_t level, std::string& out) {
  const bool broken = indent > 0 && std::ranges::any_of(value.elements(), is_container);
  out += '[';
  bool first = true;
  for (const Json& element : value.elements()) {
    if (!first) out += broken ? "," : ", ";
    first = false;
    if (broken) line_break(indent, level + 1, out);
    append(element, indent, level + 1, out);
  }
  if (broken) line_break(indent, level, out);
  out += ']';
}

void append_object(const Json& value, std::size_t indent, std::size_t level, std::string& out) {
  const bool broken = indent > 0 && !value.members().empty();
  out += '{';
  bool first = true;
  for (const Json::Member& member : value.members()) {
    if (!first) out += broken ? "," : ", ";
    first = false;
    if (broken) line_break(indent, level + 1, out);
    append_string(member.key, out);
    out += ": ";
    append(member.value, indent, level + 1, out);
  }
  if (broken) line_break(indent, level, out);
  out += '}';
}

void append(const Json& value, std::size_t indent, std::size_t level, std::string& out) {
  switch (value.kind()) {
    case Json::Kind::null: out += "null"; return;
    case Json::Kind::boolean: out += value.boolean() ? "true" : "false"; return;
    case Json::Kind::number: out += value.number(); return;
    case Json::Kind::string: append_string(value.string(), out); return;
    case Json::Kind::array: append_array(value, indent, level, out); return;
    case Json::Kind::object: append_object(value, indent, level, out); return;
  }
}

}  // namespace

Json::Json() = default;
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}

Json::Json(float value) {
  if (std::isfinite(value)) value_ = Number{shortest(value)};
}

Json::Json(double value) {
  if (std::isfinite(value)) value_ = Number{shortest(value)};
}

Json Json::array() { return array(std::vector<Json>()); }
Json Json::object() { return object(std::vector<Member>()); }

Json Json::array(std::vector<Json> elements) {
  Json json;
  json.value_ = std::move(elements);
  return json;
}

Json Json::object(std::vector<Member> members) {
  Json json;
  json.value_ = std::move(members);
  return json;
}

std::string Json::dump(int indent) const {
  std::string out;
  append(*this, static_cast<std::size_t>(std::max(indent, 0)), 0, out);
  return out;
}

const Json* Json::find(std::string_view key) const noexcept {
  if (!is(Kind::object)) return nullptr;
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

void Json::push(Json element) { std::get_if<std::vector<Json>>(&value_)->push_back(std::move(element)); }

void Json::set(std::string_view key, Json value) {
  auto& members = *std::get_if<std::vector<Member>>(&value_);
  const auto found = std::ranges::find(members, key, &Member::key);
  if (found != members.end()) {
    found->value = std::move(value);
  } else {
    members.push_back({std::string(key), std::move(value)});
  }
}

bool operator==(const Json& a, const Json& b) noexcept { return a.value_ == b.value_; }

const char* to_string(Json::Kind kind) noexcept {
  switch (kind) {
    case Json::Kind::null: return "null";
    case Json::Kind::boolean: return "true or false";
    case Json::Kind::number: return "a number";
    case Json::Kind::string: return "a string";
    case Json::Kind::array: return "an array";
    case Json::Kind::object: return "an object";
  }
  return "nothing";
}

}  // namespace vitro
