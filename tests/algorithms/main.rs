//! Every algorithm against known results: posteriors in closed form, independently implemented recursions, equalities
//! between algorithms.

mod algorithms;
mod baselines;
mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod driven;
mod factors;
mod fedwba_replies;
mod gaussian;
mod gaussian_process;
mod known_posterior;
mod langevin;
mod local_svgd;
mod newton;
mod newton_curvature;
mod newton_gaussian;
mod newton_together;
mod one_particle;
mod personal;
mod personal_bayes;
mod personal_fedwba;
mod personal_frequentist;
mod personal_gp;
mod personal_recursions;
mod personal_vem;
mod variants;
mod visits;
