// SPDX-License-Identifier: Apache-2.0
// The JSON parser: recursive descent over RFC 8259's grammar, with the limits that untrusted text needs.
#include "../core/text.hpp"
#include "json.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace vitro {

// One parse. Each rule consumes what it matches and returns false after the first error, which is then in error_.
class JsonParser {
 public:
  JsonParser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  Result<Json> document() {
    if (text_.size() > Json::kMaxBytes) {
      return Error(ErrorCode::format, quoted(origin_) + " has " + std::to_string(text_.size()) +
                                          " bytes; a JSON document may have " + std::to_string(Json::kMaxBytes));
    }
    Json result;
    if (!value(result, 0)) return *error_;
    skip_space();
    if (at_ != text_.size()) {
      expected("nothing more after the document");
      return *error_;
    }
    return result;
  }

 private:
  bool more() const { return at_ < text_.size(); }
  bool next_is(char c) const { return more() && text_[at_] == c; }
  bool next_in(char low, char high) const { return more() && text_[at_] >= low && text_[at_] <= high; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (more() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }

  // What stands at the current place, for an error.
  std::string found() const {
    if (!more()) return "the end of the text";
    const std::size_t length = std::max<std::size_t>(utf8_length(text_.substr(at_)), 1);
    return quoted(text_.substr(at_, length));
  }

  bool error(std::string_view what) {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::string_view in_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0: the first line
    const auto column = 1 + std::count_if(in_line.begin(), in_line.end(),
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; });
    error_ = Error(ErrorCode::format, quoted(origin_) + ", line " + std::to_string(line) + ", column " +
                                          std::to_string(column) + ": " + std::string(what));
    return false;
  }
  bool expected(std::string_view what) { return error("expected " + std::string(what) + ", found " + found()); }

  bool value(Json& out, int depth) {
    skip_space();
    if (next_is('{') || next_is('[')) {
      if (depth == Json::kMaxDepth)
        return error("arrays and objects are nested deeper than " + std::to_string(Json::kMaxDepth));
      return next_is('{') ? object(out, depth + 1) : array(out, depth + 1);
    }
    if (next_is('"')) {
      std::string text;
      if (!string(text)) return false;
      out = Json(std::move(text));
      return true;
    }
    if (next_is('-') || next_in('0', '9')) return number(out);
    return word("true", Json(true), out) || word("false", Json(false), out) || word("null", Json(), out) || expected("a value");
  }

  bool word(std::string_view name, Json meaning, Json& out) {
    if (!text_.substr(at_).starts_with(name)) return false;
    at_ += name.size();
    out = std::move(meaning);
    return true;
  }

  bool array(Json& out, int depth) {
    ++at_;
    std::vector<Json> elements;
    skip_space();
    if (!take(']')) {
      do {
        if (!value(elements.emplace_back(), depth)) return false;
        skip_space();
      } while (take(','));
      if (!take(']')) return expected("',' or ']' after an element");
    }
    out = Json::array(std::move(elements));
    return true;
  }

  bool object(Json& out, int depth) {
    ++at_;
    std::vector<Json::Member> members;
    std::set<std::string> keys;  // a million members must not cost a million squared
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        if (!next_is('"')) return expected("a key in double quotes");
        const std::size_t key_at = at_;
        Json::Member& member = members.emplace_back();
        if (!string(member.key)) return false;
        if (!keys.insert(member.key).second) {
          at_ = key_at;
          return error("the key " + quoted(member.key) + " is in this object twice");
        }
        skip_space();
        if (!take(':')) return expected("':' after the key " + quoted(member.key));
        if (!value(member.value, depth)) return false;
        skip_space();
      } while (take(','));
      if (!take('}')) return expected("',' or '}' after a member");
    }
    out = Json::object(std::move(members));
    return true;
  }

  bool digits() {
    if (!next_in('0', '9')) return expected("a digit");
    while (next_in('0', '9')) ++at_;
    return true;
  }

  bool number(Json& out) {
    const std::size_t begin = at_;
    take('-');
    if (take('0')) {
      if (next_in('0', '9')) return error("a number must not begin with a zero that is followed by digits");
    } else if (!digits()) {
      return false;
    }
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    out.value_ = Json::Number{std::string(text_.substr(begin, at_ - begin))};
    return true;
  }

  bool string(std::string& out) {
    ++at_;
    for (;;) {
      if (!more()) return expected("'\"' at the end of a string");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!escape(out)) return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return error("the control character " + found() + " in a string must be escaped");
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) return error("the byte " + found() + " in a string does not belong to a UTF-8 character");
      out += text_.substr(at_, length);
      at_ += length;
    }
  }

  bool escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t begin = at_++;
    if (take('u')) return unicode_escape(begin, out);
    const std::size_t which = more() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) return expected("one of \" \\ / b f n r t u after a backslash");
    out += kMeanings[which];
    ++at_;
    return true;
  }

  // After "\u": one unit, or two that are a surrogate pair. Errors point to the backslash at `begin`.
  bool unicode_escape(std::size_t begin, std::string& out) {
    unsigned code = 0;
    if (!hex4(code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return unpaired(begin);
    if (code >= 0xD800 && code <= 0xDBFF) {
      unsigned low = 0;
      if (!text_.substr(at_).starts_with("\\u")) return unpaired(begin);
      at_ += 2;
      if (!hex4(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return unpaired(begin);
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(code, out);
    return true;
  }

  bool unpaired(std::size_t begin) {
    at_ = begin;
    return error("the escape " + quoted(text_.substr(begin, 6)) + " is half of a surrogate pair without the other");
  }

  bool hex4(unsigned& code) {
    for (int i = 0; i < 4; ++i, ++at_) {
      unsigned digit = 0;
      if (next_in('0', '9')) {
        digit = static_cast<unsigned>(text_[at_] - '0');
      } else if (next_in('a', 'f')) {
        digit = static_cast<unsigned>(text_[at_] - 'a') + 10;
      } else if (next_in('A', 'F')) {
        digit = static_cast<unsigned>(text_[at_] - 'A') + 10;
      } else {
        return expected("four hexadecimal digits after \\u");
      }
      code = code * 16 + digit;
    }
    return true;
  }

  static void append_utf8(unsigned code, std::string& out) {
    const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | (code >> 12));
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xF0 | (code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  std::string_view origin_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

Result<Json> Json::parse(std::string_view text, std::string_view origin) { return JsonParser(text, origin).document(); }

}  // namespace vitro
