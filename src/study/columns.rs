//! The columns of a study's CSV files. Its axes are columns there too, under other names.

/// The columns of `results.csv` and `table.csv` besides the axes.
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

/// The columns of `pooled.csv` besides the axes.
pub const OF_POOLED: [&str; 16] = [
    "metric",
    "variants",
    "mean",
    "sd",
    "smallest",
    "largest",
    "low",
    "high",
    "further_low",
    "further_high",
    "difference",
    "difference_low",
    "difference_high",
    "common_variants",
    "p",
    "verdict",
];
