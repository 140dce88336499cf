//! What a report says of a run in words: its rows, its model and its machine.

use crate::backend::Session;
use crate::models::Model;

use super::config::Config;

/// The fact with the number of particles.
pub(super) const PARTICLES: &str = "particles";

/// What a report says of a run: its rows, its model and its machine.
///
/// # Arguments
/// * `about`, `clients`: the data and the clients, in words
/// * `kind`: what the model is called
pub(super) fn facts(
    config: &Config,
    particles: usize,
    (about, clients): (String, String),
    (kind, model): (&str, &dyn Model),
    session: &Session,
) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("data", about),
        fact("model", format!("{kind}, d = {}", model.layout().dim())),
        fact("algorithm", config.algorithm.name().to_owned()),
        fact(PARTICLES, particles.to_string()),
        fact("clients", clients),
        fact("backend", format!("{} on {}", session.backend().name(), session.hardware())),
        fact("seed", config.seed.to_string()),
        fact("fedstein", env!("CARGO_PKG_VERSION").to_owned()),
    ]
}
