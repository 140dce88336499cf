//! The names of arrays and numbers in messages and states.

/// The name of particles in messages.
pub const PARTICLES: &str = "particles";

/// The name, in a request, of the factor of the step size in this round; a request without it has the factor 1.
pub const STEP_FACTOR: &str = "step_factor";

/// The name of N_k in a reply, the number of rows of its client.
pub const ROWS: &str = "rows";

/// The name of a client's squared Stein discrepancy in a reply.
pub const DISCREPANCY: &str = "discrepancy";

/// The name, in a reply, of the number of bytes that its client keeps between rounds.
pub const CLIENT_BYTES: &str = "client_bytes";

/// The name, in a reply, of the effective number of centres in the density of the client's cavity: 1 is one-hot.
pub const KDE_ESS: &str = "kde_ess";

/// The name, in a reply, of the mean norm of the target's score at the start of a visit.
pub const SCORE_NORM: &str = "score_norm";

/// The name of the part of a client's state that holds the position in the order of its rows.
pub const BATCHES: &str = "batches";

/// The name of the part of a state that holds an optimiser's state.
pub const OPTIMIZER: &str = "optimizer";
