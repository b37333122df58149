// The roofline: no kernel is faster than its arithmetic at the peak rate or its traffic at the bandwidth, unless operands stay in
// a cache. Used to take the bulk of the size dependence out before interpolation, never as a bound of an answer.
// Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
#pragma once
#include "fuselab/perfdb/device.h"
#include "fuselab/perfdb/family.h"

namespace fuselab::perfdb {

struct Rates {
  double flops = 0;  ///< per microsecond; 0: unknown, the term is left out
  double bytes = 0;  ///< per microsecond
};

/// Rates of a device for a family; without a profile, the best that any of `rows` reached.
Rates rates_of(const Family& family, const DeviceProfile* device, const std::vector<std::size_t>& rows);

/// Microseconds: the larger of the two terms.
double roofline_us(const Rates& rates, double flops, double bytes);

}  // namespace fuselab::perfdb
