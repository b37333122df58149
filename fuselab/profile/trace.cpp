#include "fuselab/profile/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"
#include "fuselab/profile/kernel_details.h"

namespace fuselab::profile {
namespace {

using nlohmann::json;

/// Where a text stops to be JSON.
struct Fault {
  std::size_t byte = 0;
  std::string why;
};

struct Raw {
  TraceEvent event;
  std::string start, duration;  // as written
};

/// Collects events while the parser walks: a number keeps its digits, and a large file needs no tree.
class Walk : public json::json_sax_t {
 public:
  std::vector<Raw> events;
  std::optional<Fault> fault;
  bool found_array = false;

  bool null() override { return scalar(""); }
  bool boolean(bool v) override { return scalar(v ? "true" : "false"); }
  bool number_integer(number_integer_t v) override { return scalar(std::to_string(v)); }
  bool number_unsigned(number_unsigned_t v) override { return scalar(std::to_string(v)); }
  bool number_float(number_float_t, const string_t& text) override { return scalar(text); }
  bool string(string_t& v) override { return scalar(v); }
  bool binary(binary_t&) override { return scalar(""); }

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == event_depth_) {
      events.emplace_back();
      in_event_ = true;
    }
    if (depth_ == event_depth_ + 1) in_args_ = key_ == "args";
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_) in_event_ = false;
    --depth_;
    if (depth_ == event_depth_) in_args_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (event_depth_ == 0 && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      event_depth_ = depth_ + 1;
      found_array = true;
    }
    return true;
  }
  bool end_array() override {
    if (depth_ + 1 == event_depth_) event_depth_ = kDone;
    --depth_;
    return true;
  }
  bool key(string_t& v) override {
    key_ = v;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string why = e.what();  // "[...] parse error at line .., column ..: what; last read: ..." with the file's own bytes
    why.resize(std::min(why.size(), why.find("; last read")));
    if (const std::size_t colon = why.find(": "); colon != std::string::npos) why.erase(0, colon + 2);
    fault = Fault{position, why};
    return false;
  }

 private:
  static constexpr int kDone = 1 << 30;

  bool scalar(const std::string& v) {
    if (!in_event_) return true;
    Raw& raw = events.back();
    if (depth_ == event_depth_ + 1 && in_args_) {
      raw.event.args[key_] = v;
    } else if (depth_ == event_depth_) {
      if (key_ == "name") raw.event.name = v;
      if (key_ == "ph") raw.event.phase = v;
      if (key_ == "cat") raw.event.category = v;
      if (key_ == "pid") raw.event.process = v;
      if (key_ == "tid") raw.event.thread = v;
      if (key_ == "ts") raw.start = v;
      if (key_ == "dur") raw.duration = v;
    }
    return true;
  }

  int depth_ = 0, event_depth_ = 0;  // events are objects at event_depth_; 0: their array has not come yet
  bool in_event_ = false, in_args_ = false;
  std::string key_;
};

std::size_t line_of(std::string_view text, std::size_t byte) {
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size())), '\n'));
}

/// Starts of what may be events: `{` and a quote behind the file's beginning, a `[` or a comma.
std::vector<std::size_t> starts(std::string_view text) {
  std::vector<std::size_t> out;
  char before = '[';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '{' && (before == '[' || before == ',')) {
      const std::size_t next = text.find_first_not_of(" \n\r\t", i + 1);
      if (next != std::string_view::npos && text[next] == '"') out.push_back(i);
    }
    before = c;
  }
  return out;
}

/// The objects that parse on their own; one may hold starts of others (objects in a list of its args).
std::vector<Raw> salvaged(std::string_view text, std::int64_t& lost) {
  const std::vector<std::size_t> at = starts(text);
  std::vector<Raw> out;
  constexpr std::size_t kMostPieces = 8;
  for (std::size_t i = 0; i < at.size();) {
    std::size_t used = 0;
    for (std::size_t n = 1; n <= kMostPieces && i + n <= at.size() && used == 0; ++n) {
      std::string_view piece = text.substr(at[i], (i + n < at.size() ? at[i + n] : text.size()) - at[i]);
      piece = piece.substr(0, piece.rfind('}') == std::string_view::npos ? 0 : piece.rfind('}') + 1);
      for (int closing = 0; closing < 3 && used == 0 && !piece.empty(); ++closing) {  // `}]}` ends an object with traceEvents
        Walk walk;
        const std::string alone = "[" + std::string(piece) + "]";
        if (json::sax_parse(alone, &walk) && walk.events.size() == 1 && !walk.events[0].event.phase.empty()) {
          out.push_back(std::move(walk.events[0]));
          used = n;
        }
        const std::size_t brace = piece.substr(0, piece.size() - 1).rfind('}');
        piece = brace == std::string_view::npos ? std::string_view() : piece.substr(0, brace + 1);
        if (i + n < at.size()) break;  // only the file's last event has more behind it
      }
    }
    if (used == 0) ++lost;
    i += std::max<std::size_t>(used, 1);
  }
  return out;
}

}  // namespace

Trace parse_trace(std::string_view text, const std::string& what, bool salvage) {
  Walk walk;
  Trace trace;
  json::sax_parse(text, &walk);
  std::vector<Raw> raw;
  if (walk.fault || !walk.found_array) {
    if (!salvage) {
      const Fault fault = walk.fault.value_or(Fault{0, "there is no array of events"});
      fail("trace.malformed", "{}:{}: byte {}: {}; --salvage reads the events around it.", what, line_of(text, fault.byte),
           fault.byte, fault.why);
    }
    raw = salvaged(text, trace.lost);
  } else {
    raw = std::move(walk.events);
  }
  const auto number = [&](const std::string& v, const char* key, const std::string& name) -> std::optional<std::int64_t> {
    if (v.empty()) return std::nullopt;
    std::optional<std::int64_t> ns = parse_milli(v);
    if (double wide = 0; !ns && v.find_first_of("eE") != std::string::npos) {  // 1.7e+15: such a writer had a double
      const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), wide);
      if (error == std::errc{} && end == v.data() + v.size() && std::fabs(wide) < 9e15) ns = std::llround(wide * 1000);
    }
    if (!ns) fail("trace.malformed", "{}: {} of event '{}' is '{}', no number of microseconds.", what, key, name, v);
    return ns;
  };
  bool first = true;
  for (Raw& r : raw) {
    r.event.start_ns = number(r.start, "ts", r.event.name);
    r.event.duration_ns = number(r.duration, "dur", r.event.name);
    if (r.event.phase == "M") r.event.start_ns.reset();  // metadata; some writers give it a 0
    if (r.event.start_ns && (first || *r.event.start_ns < trace.base_ns)) {
      trace.base_ns = *r.event.start_ns;
      first = false;
    }
    trace.events.push_back(std::move(r.event));
  }
  for (TraceEvent& e : trace.events) {
    if (e.start_ns) *e.start_ns -= trace.base_ns;
  }
  return trace;
}

Trace read_trace(const std::string& path, bool salvage) {
  const MappedFile file(path);
  return parse_trace({file.data(), file.size()}, path, salvage);
}

}  // namespace fuselab::profile
