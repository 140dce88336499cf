//! The names of the arrays of this method in messages and states.

/// The names under which scores and curvatures of sites travel: those of the cavity to the client, those of its own site
/// back. With them go the second moments that act on displacements, and those of the client's own rows.
pub(super) const GRADIENT: &str = "gradient";
pub(super) const CURVATURE: &str = "curvature";
pub(super) const SHARED_MOMENTS: &str = "input_moments";
pub(super) const OWN_MOMENTS: &str = "hidden_moments";
