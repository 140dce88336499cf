//! The columns of a study's CSV files, which no axis may be named like.

/// The columns of the CSV files besides the axes.
pub const COLUMNS: [&str; 17] = [
    "seed",
    "metric",
    "seeds",
    "mean",
    "sd",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "common_seeds",
    "p",
    "verdict",
    "rounds",
    "uplink_mib",
    "downlink_mib",
    "seconds",
];
