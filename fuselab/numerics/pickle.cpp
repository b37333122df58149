#include "fuselab/numerics/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "fuselab/core/error.h"

namespace fuselab::numerics::detail {
namespace {

struct Object;
using Ref = Object*;  // into the machine's own store: a pickle may make cycles and chains of any depth

struct Object {
  enum class Kind : std::uint8_t { opaque, none, boolean, integer, number, text, global, list, dict, storage, tensor, mark };
  Kind kind = Kind::opaque;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;                      // text; global: module.name
  std::vector<Ref> items;                // list, tuple
  std::vector<std::pair<Ref, Ref>> map;  // dict
  PickledTensor tensor;                  // tensor, storage
};
using Kind = Object::Kind;

constexpr std::size_t kMostObjects = 20'000'000;
constexpr std::size_t kDeepest = 200;  // nesting of containers whose tensors are named

std::optional<DType> storage_type(const std::string& global) {
  static const std::pair<const char*, DType> kTypes[] = {
      {"HalfStorage", DType::f16}, {"BFloat16Storage", DType::bf16}, {"FloatStorage", DType::f32}, {"DoubleStorage", DType::f64},
      {"CharStorage", DType::i8},  {"ByteStorage", DType::u8},       {"ShortStorage", DType::i16}, {"IntStorage", DType::i32},
      {"LongStorage", DType::i64}, {"BoolStorage", DType::boolean}};
  for (const auto& [name, type] : kTypes) {
    if (global == std::string("torch.") + name) return type;
  }
  return std::nullopt;
}

class Machine {
 public:
  Machine(const char* bytes, std::size_t size, const std::string& path)
      : at_(bytes), begin_(bytes), end_(bytes + size), path_(path) {}

  Ref run();

 private:
  [[noreturn]] void bad(const std::string& why) const {
    fail("pickle.malformed", "{}: its data.pkl cannot be read at byte {}: {}.", path_, at_ - begin_, why);
  }
  const char* take(std::size_t n) {
    if (n > static_cast<std::size_t>(end_ - at_)) bad("it ends inside an operation");
    const char* out = at_;
    at_ += n;
    return out;
  }
  std::uint64_t natural(std::size_t n) {
    const char* p = take(n);
    std::uint64_t out = 0;
    for (std::size_t i = n; i-- > 0;) out = out << 8 | static_cast<unsigned char>(p[i]);
    return out;
  }
  std::string counted(std::size_t n) {
    const std::uint64_t length = natural(n);
    if (length > static_cast<std::uint64_t>(end_ - at_)) bad("a text is longer than the file");
    return {take(static_cast<std::size_t>(length)), static_cast<std::size_t>(length)};
  }
  std::string line() {
    const void* found = std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_));
    if (!found) bad("a line has no end");
    const auto* stop = static_cast<const char*>(found);
    std::string out(at_, stop);
    at_ = stop + 1;
    return out;
  }

  Ref make(Kind kind) {
    if (store_.size() >= kMostObjects) bad("it makes more objects than any model has");
    store_.emplace_back().kind = kind;
    return &store_.back();
  }
  Ref integer(std::int64_t value) {
    Ref out = make(Kind::integer);
    out->integer = value;
    return out;
  }
  Ref text(std::string value) {
    Ref out = make(Kind::text);
    out->text = std::move(value);
    return out;
  }
  Ref global(const std::string& module, const std::string& name) {
    Ref out = make(Kind::global);
    out->text = module + "." + name;
    return out;
  }

  void push(Ref r) { stack_.push_back(r); }
  Ref pop() {
    if (stack_.empty()) bad("its stack is empty");
    Ref out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Ref top() {
    if (stack_.empty()) bad("its stack is empty");
    return stack_.back();
  }
  std::vector<Ref> pop_to_mark() {
    std::size_t i = stack_.size();
    while (i > 0 && stack_[i - 1]->kind != Kind::mark) --i;
    if (i == 0) bad("a mark is missing");
    std::vector<Ref> out(stack_.begin() + static_cast<std::ptrdiff_t>(i), stack_.end());
    stack_.resize(i - 1);
    return out;
  }
  void tuple(std::size_t n) {
    if (stack_.size() < n) bad("its stack is too short for a tuple");
    Ref out = make(Kind::list);
    out->items.assign(stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end());
    stack_.resize(stack_.size() - n);
    push(out);
  }
  void set_items(const Ref& into, const std::vector<Ref>& pairs) {
    if (pairs.size() % 2 != 0) bad("a key has no value");
    for (std::size_t i = 0; i < pairs.size(); i += 2) into->map.emplace_back(pairs[i], pairs[i + 1]);
  }
  void remember(std::uint64_t place) { memo_[place] = top(); }
  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) bad("it recalls what was never remembered");
    push(found->second);
  }

  void persistent();
  void reduce();
  std::vector<std::int64_t> integers(const Ref& tuple) const {
    std::vector<std::int64_t> out;
    for (const Ref& item : tuple->items) {
      if (item->kind != Kind::integer) bad("a size or stride is no number");
      out.push_back(item->integer);
    }
    return out;
  }

  const char* at_;
  const char* begin_;
  const char* end_;
  const std::string& path_;
  std::deque<Object> store_;
  std::vector<Ref> stack_;
  std::map<std::uint64_t, Ref> memo_;
};

// ('storage', torch.FloatStorage, key, device, count)
void Machine::persistent() {
  const Ref id = pop();
  Ref out = make(Kind::opaque);
  if (id->kind == Kind::list && id->items.size() >= 3 && id->items[0]->text == "storage") {
    out->kind = Kind::storage;
    out->tensor.storage = id->items[2]->text;
    const auto type = storage_type(id->items[1]->text);
    if (type) {
      out->tensor.dtype = *type;
    } else {
      out->tensor.problem = fmt::format("its storage type {} is not one of ours", id->items[1]->text);
    }
  }
  push(out);
}

void Machine::reduce() {
  const Ref arguments = pop(), function = pop();
  if (arguments->kind != Kind::list) bad("a call has no tuple of arguments");
  const std::vector<Ref>& given = arguments->items;
  if (function->text == "torch._utils._rebuild_tensor_v2" && given.size() >= 4 && given[0]->kind == Kind::storage) {
    Ref out = make(Kind::tensor);
    out->tensor = given[0]->tensor;
    out->tensor.offset = given[1]->integer;
    out->tensor.sizes = integers(given[2]);
    out->tensor.strides = integers(given[3]);
    if (out->tensor.sizes.size() != out->tensor.strides.size()) bad("a tensor has not as many strides as sizes");
    for (const std::int64_t size : out->tensor.sizes) {
      if (size < 0) bad("a size is negative");
    }
    push(out);
  } else if (function->text == "torch._utils._rebuild_parameter" && !given.empty()) {
    push(given[0]);
  } else if (function->text == "collections.OrderedDict") {
    push(make(Kind::dict));
  } else {
    push(make(Kind::opaque));
  }
}

Ref Machine::run() {
  for (;;) {
    const auto operation = static_cast<unsigned char>(*take(1));
    switch (operation) {
      case 0x80:
        take(1);
        break;  // PROTO
      case 0x95:
        take(8);
        break;  // FRAME
      case '.':
        return pop();  // STOP
      case '(':
        push(make(Kind::mark));
        break;  // MARK
      case '0':
        pop();
        break;  // POP
      case '1':
        pop_to_mark();
        break;  // POP_MARK
      case '2':
        push(top());
        break;  // DUP
      case 'N':
        push(make(Kind::none));
        break;  // NONE
      case 0x88:
      case 0x89:
        push(make(Kind::boolean));
        break;  // NEWTRUE, NEWFALSE
      case 'J':
        push(integer(static_cast<std::int32_t>(natural(4))));
        break;  // BININT
      case 'K':
        push(integer(static_cast<std::int64_t>(natural(1))));
        break;  // BININT1
      case 'M':
        push(integer(static_cast<std::int64_t>(natural(2))));
        break;      // BININT2
      case 0x8a: {  // LONG1: little endian, two's complement
        const std::uint64_t n = natural(1);
        const char* p = take(static_cast<std::size_t>(n));
        if (n > 8) {
          push(make(Kind::opaque));
          break;
        }
        std::uint64_t value = n > 0 && (p[n - 1] & 0x80) ? ~std::uint64_t{0} : 0;
        for (std::size_t i = n; i-- > 0;) value = value << 8 | static_cast<unsigned char>(p[i]);
        push(integer(static_cast<std::int64_t>(value)));
        break;
      }
      case 'G': {  // BINFLOAT: big endian
        Ref out = make(Kind::number);
        out->number = std::bit_cast<double>(__builtin_bswap64(natural(8)));
        push(out);
        break;
      }
      case 'X':
        push(text(counted(4)));
        break;  // BINUNICODE
      case 0x8c:
        push(text(counted(1)));
        break;  // SHORT_BINUNICODE
      case 0x8d:
        push(text(counted(8)));
        break;  // BINUNICODE8
      case 'U':
      case 'C':
        push(text(counted(1)));
        break;  // SHORT_BINSTRING, SHORT_BINBYTES
      case 'T':
      case 'B':
        push(text(counted(4)));
        break;  // BINSTRING, BINBYTES
      case '}':
        push(make(Kind::dict));
        break;  // EMPTY_DICT
      case ']':
      case ')':
        push(make(Kind::list));
        break;  // EMPTY_LIST, EMPTY_TUPLE
      case 0x8f:
        push(make(Kind::opaque));
        break;  // EMPTY_SET
      case 't':
      case 'l': {  // TUPLE, LIST
        Ref out = make(Kind::list);
        out->items = pop_to_mark();
        push(out);
        break;
      }
      case 'd': {  // DICT
        Ref out = make(Kind::dict);
        set_items(out, pop_to_mark());
        push(out);
        break;
      }
      case 0x85:
        tuple(1);
        break;  // TUPLE1
      case 0x86:
        tuple(2);
        break;  // TUPLE2
      case 0x87:
        tuple(3);
        break;     // TUPLE3
      case 'a': {  // APPEND
        const Ref item = pop();
        top()->items.push_back(item);
        break;
      }
      case 'e': {  // APPENDS
        const std::vector<Ref> items = pop_to_mark();
        const Ref into = top();
        into->items.insert(into->items.end(), items.begin(), items.end());
        break;
      }
      case 0x90:
        pop_to_mark();
        break;     // ADDITEMS
      case 's': {  // SETITEM
        const Ref value = pop(), key = pop();
        top()->map.emplace_back(key, value);
        break;
      }
      case 'u': {  // SETITEMS
        const std::vector<Ref> pairs = pop_to_mark();
        set_items(top(), pairs);
        break;
      }
      case 'c': {  // GLOBAL
        const std::string module = line(), name = line();
        push(global(module, name));
        break;
      }
      case 0x93: {  // STACK_GLOBAL
        const Ref name = pop(), module = pop();
        push(global(module->text, name->text));
        break;
      }
      case 'q':
        remember(natural(1));
        break;  // BINPUT
      case 'r':
        remember(natural(4));
        break;  // LONG_BINPUT
      case 0x94:
        remember(memo_.size());
        break;  // MEMOIZE
      case 'h':
        recall(natural(1));
        break;  // BINGET
      case 'j':
        recall(natural(4));
        break;  // LONG_BINGET
      case 'Q':
        persistent();
        break;  // BINPERSID
      case 'R':
        reduce();
        break;      // REDUCE
      case 0x81: {  // NEWOBJ
        pop();
        pop();
        push(make(Kind::opaque));
        break;
      }
      case 'b': {  // BUILD: the state of an object; of an opaque one, its tensors
        const Ref state = pop();
        if (top()->kind == Kind::opaque) {
          stack_.pop_back();
          push(state);
        }
        break;
      }
      default:
        --at_;
        bad(fmt::format("operation 0x{:02x} is not one that torch.save makes", operation));
    }
  }
}

/// Walks containers by name. A pickle can name one list many times over, so the steps are counted.
class Collector {
 public:
  explicit Collector(const std::string& path) : path_(path) {}
  std::vector<PickledTensor> found;

  void visit(Ref object, const std::string& name, std::size_t depth) {
    if (depth > kDeepest || ++steps_ > kMostObjects) {
      fail("pickle.malformed", "{}: its containers are nested {} deep or name each other without end.", path_, depth);
    }
    const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
    if (object->kind == Kind::tensor) {
      found.push_back(object->tensor);
      found.back().name = name.empty() ? "tensor" : name;
    } else if (object->kind == Kind::list) {
      for (std::size_t i = 0; i < object->items.size(); ++i) visit(object->items[i], inner(std::to_string(i)), depth + 1);
    } else if (object->kind == Kind::dict) {
      for (const auto& [key, value] : object->map) {
        visit(value, inner(key->kind == Kind::integer ? std::to_string(key->integer) : key->text), depth + 1);
      }
    }
  }

 private:
  const std::string& path_;
  std::size_t steps_ = 0;
};

}  // namespace

std::vector<PickledTensor> read_pickled_tensors(const char* bytes, std::size_t size, const std::string& path) {
  Machine machine(bytes, size, path);
  Collector collector(path);
  collector.visit(machine.run(), "", 0);
  return std::move(collector.found);
}

}  // namespace fuselab::numerics::detail
