// What the ledger asks of regions and targets beside prices.
#pragma once

#include "driver/settle_ledger.hpp"
#include "target/target.hpp"

namespace opfuse {

OperandReads reads_of_operands(const Node& node);  ///< a ReadCount
Traffic traffic_on(const TargetInfo& target);
LaunchPrices launch_prices(const TargetInfo& target);

}  // namespace opfuse
