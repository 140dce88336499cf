//! Federated algorithms: each a server half and a client half that exchange messages.
//!
//! To add one: a file here with its configuration and its halves, and a line in [`Algorithm::build`].

pub mod dsgld;
pub mod dsvgd;
pub mod fedavg;
pub mod fedper;
pub mod fedprox;
pub mod fedsgd;
pub mod fedwba;
pub mod gaussian;
pub mod gvi;
pub mod langevin;
mod layers;
mod lbfgs;
mod local;
pub mod mean_field;
pub mod npv;
pub mod p_dsvgd;
pub mod per_fedavg;
pub mod pfedbayes;
pub mod pfedgp;
pub mod pfedme;
pub mod pfedvem;
pub mod pmd;
pub mod pvi;
mod relay;
pub mod scaffold;
pub mod sgld;
mod split;
pub mod svgd;
pub mod u_dsvgd;

use crate::backend::Backend;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Halves, PARTICLES, Setup};

/// An algorithm and its constants.
#[derive(Clone, Debug)]
pub enum Algorithm {
    /// Distributed SVGD.
    Dsvgd(dsvgd::DsvgdConfig),
    /// DSVGD whose factors are remembered exactly.
    UDsvgd(u_dsvgd::UDsvgdConfig),
    /// DSVGD of many clients at once.
    PDsvgd(p_dsvgd::PDsvgdConfig),
    /// SVGD on all rows in one place.
    Svgd(svgd::SvgdConfig),
    /// Langevin dynamics on all rows in one place.
    Sgld(sgld::SgldConfig),
    /// Langevin chains that travel between clients.
    Dsgld(dsgld::DsgldConfig),
    /// Partitioned variational inference with Gaussians.
    Pvi(pvi::PviConfig),
    /// Gaussian variational inference on all rows in one place.
    Gvi(gvi::GviConfig),
    /// Particle mirror descent on all rows in one place.
    Pmd(pmd::PmdConfig),
    /// Nonparametric variational inference on all rows in one place.
    Npv(npv::NpvConfig),
    /// Federated averaging.
    FedAvg(fedavg::FedAvgConfig),
    /// Federated gradient steps.
    FedSgd(fedsgd::FedSgdConfig),
    /// Particles and Wasserstein barycenters.
    FedWba(fedwba::FedWbaConfig),
    /// Averaging with a proximal term.
    FedProx(fedprox::FedProxConfig),
    /// Averaging with control variates.
    Scaffold(scaffold::ScaffoldConfig),
    /// Averaging below a personal head.
    FedPer(fedper::FedPerConfig),
    /// Averaging of a start from which a client adapts.
    PerFedAvg(per_fedavg::PerFedAvgConfig),
    /// Personal parameters around a shared centre.
    PFedMe(pfedme::PFedMeConfig),
    /// Personal Gaussians around a shared Gaussian.
    PFedBayes(pfedbayes::PFedBayesConfig),
    /// Gaussian heads on a shared base.
    PFedVem(pfedvem::PFedVemConfig),
    /// Gaussian processes on a shared embedding.
    PFedGp(pfedgp::PFedGpConfig),
}

impl Algorithm {
    /// Number of particles N.
    pub fn particles(&self) -> usize {
        match self {
            Self::Dsvgd(config) => config.particles,
            Self::UDsvgd(config) => config.particles,
            Self::PDsvgd(config) => config.local.particles,
            Self::Svgd(config) => config.particles,
            Self::Sgld(config) => config.particles,
            Self::Dsgld(config) => config.particles,
            Self::Pvi(config) => config.particles,
            Self::Gvi(config) => config.particles,
            Self::Pmd(config) => config.particles,
            Self::Npv(config) => config.particles,
            Self::FedWba(config) => config.particles,
            Self::PFedBayes(config) => config.particles,
            Self::PFedVem(config) => config.particles,
            Self::FedAvg(_)
            | Self::FedSgd(_)
            | Self::FedProx(_)
            | Self::Scaffold(_)
            | Self::FedPer(_)
            | Self::PerFedAvg(_)
            | Self::PFedMe(_)
            | Self::PFedGp(_) => 1,
        }
    }

    /// Whether all rows are in one place: then there is one client, whatever the partition.
    pub fn is_centralised(&self) -> bool {
        matches!(self, Self::Svgd(_) | Self::Sgld(_) | Self::Gvi(_) | Self::Pmd(_) | Self::Npv(_))
    }

    /// Arrays of a reply that are changes already, not new values of what was sent under their names.
    pub fn changes(&self) -> &'static [&'static str] {
        match self {
            Self::FedSgd(_) => &[PARTICLES],
            Self::Scaffold(_) => &[scaffold::CONTROL],
            _ => &[],
        }
    }

    /// How many of K clients a round takes, where the algorithm itself decides.
    pub fn clients_a_round(&self, clients: usize) -> Option<usize> {
        match self {
            Self::Dsgld(config) => Some(config.workers(clients)),
            _ => None,
        }
    }

    /// What the user should know of a choice that follows from the first particles.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn note<B: Backend>(&self, initial: &Particles<B>) -> Result<Option<String>, RunError> {
        match self {
            Self::Dsvgd(config) => config.note(initial),
            Self::PDsvgd(config) => config.local.note(initial),
            _ => Ok(None),
        }
    }

    /// Server and clients.
    ///
    /// # Errors
    /// The algorithm cannot work on this model or with these clients.
    pub fn build<B: Backend>(&self, setup: Setup<B>) -> Result<Halves<B>, RunError> {
        Ok(match self.clone() {
            Self::Dsvgd(config) => dsvgd::build(config, setup)?,
            Self::UDsvgd(config) => u_dsvgd::build(config, setup),
            Self::PDsvgd(config) => p_dsvgd::build(config, setup)?,
            Self::Svgd(config) => svgd::build(config, setup),
            Self::Sgld(config) => sgld::build(config, setup),
            Self::Dsgld(config) => dsgld::build(config, setup),
            Self::Pvi(config) => pvi::build(config, setup)?,
            Self::Gvi(config) => gvi::build(config, setup)?,
            Self::Pmd(config) => pmd::build(config, setup),
            Self::Npv(config) => npv::build(config, setup)?,
            Self::FedAvg(config) => fedavg::build(config, setup),
            Self::FedSgd(config) => fedsgd::build(config, setup),
            Self::FedWba(config) => fedwba::build(config, setup)?,
            Self::FedProx(config) => fedprox::build(config, setup)?,
            Self::Scaffold(config) => scaffold::build(config, setup)?,
            Self::FedPer(config) => fedper::build(config, setup)?,
            Self::PerFedAvg(config) => per_fedavg::build(config, setup)?,
            Self::PFedMe(config) => pfedme::build(config, setup)?,
            Self::PFedBayes(config) => pfedbayes::build(config, setup)?,
            Self::PFedVem(config) => pfedvem::build(config, setup)?,
            Self::PFedGp(config) => pfedgp::build(config, setup)?,
        })
    }
}
