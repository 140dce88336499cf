//! Quiet drivers on a machine without a display. It is a part of the command, not of the library.

/// Switches Mesa's layer for choosing a device off where there is no display: it looks for a Wayland compositor, and
/// libwayland prints `error: XDG_RUNTIME_DIR is invalid or not set in the environment` on standard error for each look.
/// Call it first, before there is a second thread.
///
/// It does nothing where a variable says that there is a display, or asks the layer for something.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn choose_no_display() {
    const LAYER: &str = "NODEVICE_SELECT";
    let asked = ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "MESA_VK_DEVICE_SELECT", "DRI_PRIME", LAYER];
    if asked.iter().all(|name| std::env::var_os(name).is_none()) {
        // SAFETY: a variable may be set while no other thread reads or sets one. The caller is the first lines of `main`,
        // where there is one thread.
        unsafe { std::env::set_var(LAYER, "1") };
    }
}

/// Does nothing: the layer is one of Linux.
#[cfg(not(target_os = "linux"))]
pub fn choose_no_display() {}
