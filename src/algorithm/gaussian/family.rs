//! The families of Gaussians.

fedstein_schema::words! {
    /// The family of Gaussians in which q is sought.
    #[derive(Default)]
    pub enum Family {
        /// Gaussians with independent coordinates.
        #[default]
        MeanField = "mean-field",
        /// Gaussians with any covariance, for a few dimensions.
        Full = "full",
    }
}
