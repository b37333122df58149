#include "perfdb.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/database.h"

namespace nb = nanobind;

namespace fuselab::python {
namespace {

using perfdb::Answer;
using perfdb::Database;
using perfdb::Query;

std::vector<perfdb::Slot> slots(const std::string& shapes, const std::string& dtypes, const std::string& formats) {
  auto out = perfdb::parse_slots(shapes, dtypes, formats);
  if (!out) fail("call.shapes", "\"{}\" is no list of shapes: write 136,7168;7168,3584.", shapes);
  return *out;
}

nb::dict dict_of(const Answer& a) {
  nb::dict d;
  const bool miss = a.source == perfdb::Source::miss;
  d["latency_us"] = miss ? nb::none() : nb::cast(a.latency_us);
  d["source"] = std::string(perfdb::name_of(a.source));
  d["interval"] = miss ? nb::none() : nb::object(nb::make_tuple(a.lo, a.hi));
  d["method"] = a.method;
  d["anchors"] = a.anchors;
  d["reason"] = a.reason;
  d["accepted"] = a.accepted;
  return d;
}

using Texts = std::vector<std::string>;

/// A column of a batch: one text for all, or one each.
class Column {
 public:
  Column(const nb::object& given, std::size_t count, const char* name) {
    if (given.is_none()) {
      texts_ = {std::string()};
    } else if (nb::isinstance<nb::str>(given)) {
      texts_ = {nb::cast<std::string>(given)};
    } else {
      for (const nb::handle item : given) texts_.push_back(nb::cast<std::string>(nb::str(item)));
      if (texts_.size() != count) {
        fail("call.batch", "{} has {} entries, the batch has {} operators.", name, texts_.size(), count);
      }
    }
  }
  const std::string& operator[](std::size_t i) const { return texts_.size() == 1 ? texts_[0] : texts_[i]; }

 private:
  Texts texts_;
};

template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array(std::vector<T> values) {
  auto* const kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

nb::dict batch(const Database& db, const Texts& ops, const nb::object& inputs, const nb::object& dtypes,
               const nb::object& formats, const nb::object& outputs, const nb::object& output_dtypes,
               const nb::object& output_formats, const std::map<std::string, nb::object>& context) {
  const std::size_t n = ops.size();
  const Column in(inputs, n, "inputs"), dt(dtypes, n, "dtypes"), fo(formats, n, "formats"), out(outputs, n, "outputs"),
      odt(output_dtypes, n, "output_dtypes"), ofo(output_formats, n, "output_formats");
  std::vector<std::pair<std::string, Column>> contexts;
  for (const auto& [name, column] : context) contexts.emplace_back(name, Column(column, n, name.c_str()));
  std::vector<double> latency(n), lo(n), hi(n);
  std::vector<std::uint8_t> source(n);
  Texts reasons(n), methods(n);
  {
    const nb::gil_scoped_release release;
    Query q;
    for (std::size_t i = 0; i < n; ++i) {
      q.op = ops[i];
      q.inputs = slots(in[i], dt[i], fo[i]);
      q.outputs = slots(out[i], odt[i], ofo[i]);
      for (const auto& [name, column] : contexts) {
        if (column[i].empty() || column[i] == "nan" || column[i] == "None") {
          q.context.erase(name);
        } else {
          q.context[name] = column[i];
        }
      }
      Answer a = db.query(q);
      const bool miss = a.source == perfdb::Source::miss;
      latency[i] = miss ? std::numeric_limits<double>::quiet_NaN() : a.latency_us;
      lo[i] = miss ? std::numeric_limits<double>::quiet_NaN() : a.lo;
      hi[i] = miss ? std::numeric_limits<double>::quiet_NaN() : a.hi;
      source[i] = static_cast<std::uint8_t>(a.source);
      reasons[i] = std::move(a.reason);
      methods[i] = std::move(a.method);
    }
  }
  nb::dict d;
  d["latency_us"] = array(std::move(latency));
  d["lo"] = array(std::move(lo));
  d["hi"] = array(std::move(hi));
  d["source"] = array(std::move(source));
  d["method"] = methods;
  d["reason"] = reasons;
  return d;
}

}  // namespace

void add_perfdb(nb::module_& m) {
  nb::class_<Database>(m, "Database", "A directory of the performance database, ready for lookups.")
      .def(nb::init<const std::string&>(), nb::arg("directory"))
      .def_prop_ro("directory", &Database::directory)
      .def_prop_ro("kernels", &Database::kernels)
      .def_prop_ro("warnings", [](const Database& db) { return db.mapping().warnings; })
      .def(
          "query_text",
          [](const Database& db, const std::string& op, const std::string& inputs, const std::string& dtypes,
             const std::string& formats, const std::string& outputs, const std::string& output_dtypes,
             const std::string& output_formats, const std::map<std::string, std::string>& context) {
            Query q{op, slots(inputs, dtypes, formats), slots(outputs, output_dtypes, output_formats), context};
            Answer a;
            {
              const nb::gil_scoped_release release;
              a = db.query(q);
            }
            return dict_of(a);
          },
          nb::arg("op"), nb::arg("inputs"), nb::arg("dtypes"), nb::arg("formats"), nb::arg("outputs"), nb::arg("output_dtypes"),
          nb::arg("output_formats"), nb::arg("context"))
      .def("batch_text", &batch, nb::arg("ops"), nb::arg("inputs").none(), nb::arg("dtypes").none(), nb::arg("formats").none(),
           nb::arg("outputs").none(), nb::arg("output_dtypes").none(), nb::arg("output_formats").none(), nb::arg("context"));
  nb::list names;
  for (int s = 0; s <= static_cast<int>(perfdb::Source::miss); ++s) {
    names.append(std::string(perfdb::name_of(static_cast<perfdb::Source>(s))));
  }
  m.attr("database_sources") = names;
}

}  // namespace fuselab::python
