//! The buffer protocol for classes, from CPython 3.9 on.
//!
//! The stable ABI has the protocol only since 3.11, so PyO3 has none for an older one. CPython 3.9 and 3.10 have all of it: the slots in
//! PyType_FromSpec (since 3.9, under the numbers that 3.11 then promised), Py_buffer and PyBuffer_FillInfo. So a class with the slots is derived
//! here, at run time, from a class of PyO3's.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use pyo3::PyClass;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

/// CPython's Py_buffer.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyBuffer_FillInfo(v: *mut View, of: *mut PyObject, at: *mut c_void, len: isize, ro: c_int, how: c_int) -> c_int;
}

/// What a class lends to views.
///
/// # Safety
/// The memory that `export` returns is writable, and stays where it is until as many calls of `release`.
pub(crate) unsafe trait Exports: PyClass<Frozen = True> + Sync {
    /// The memory and its length, for one more view.
    fn export(&self) -> PyResult<(*mut u8, usize)>;

    /// One view less.
    fn release(&self);
}

/// The class of the name that is derived from `T` and has the protocol; `made` keeps it.
pub(crate) fn class<'py, T: Exports>(
    py: Python<'py>,
    made: &'static PyOnceLock<Py<PyType>>,
    name: &'static CStr,
) -> PyResult<&'py Bound<'py, PyType>> {
    let class = made.get_or_try_init(py, || derive::<T>(py, name))?;
    Ok(class.bind(py))
}

fn derive<T: Exports>(py: Python<'_>, name: &'static CStr) -> PyResult<Py<PyType>> {
    let get: unsafe extern "C" fn(*mut PyObject, *mut View, c_int) -> c_int = get::<T>;
    let release: unsafe extern "C" fn(*mut PyObject, *mut View) = release::<T>;
    let base = py.get_type::<T>();
    let doc = base.getattr("__doc__")?;
    let mut slots = [
        ffi::PyType_Slot { slot: ffi::Py_bf_getbuffer, pfunc: get as *mut c_void },
        ffi::PyType_Slot { slot: ffi::Py_bf_releasebuffer, pfunc: release as *mut c_void },
        ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
    ];
    // A size of 0 is the base's.
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as c_uint,
        slots: slots.as_mut_ptr(),
    };
    let bases = PyTuple::new(py, [base])?;
    // SAFETY: CPython copies what it needs of the specification; only the name stays, which is static.
    let class =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpecWithBases(&raw mut spec, bases.as_ptr())) }?;
    class.setattr("__doc__", doc)?;
    Ok(class.cast_into::<PyType>()?.unbind())
}

unsafe extern "C" fn get<T: Exports>(owner: *mut PyObject, view: *mut View, flags: c_int) -> c_int {
    // SAFETY: CPython calls it, on a thread that is attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: CPython's argument, an object of a class that was derived from T.
    let object = unsafe { Bound::from_borrowed_ptr(py, owner).cast_into_unchecked::<T>() };
    let lent = object.get();
    match lent.export() {
        Ok((memory, len)) => {
            // SAFETY: CPython's own arguments; `Exports` promises the memory.
            let filled = unsafe { PyBuffer_FillInfo(view, owner, memory.cast(), len as isize, 0, flags) };
            if filled != 0 {
                lent.release();
            }
            filled
        }
        Err(wrong) => {
            // SAFETY: CPython's argument. A view without an object was not filled in.
            unsafe { (*view).obj = ptr::null_mut() };
            wrong.restore(py);
            -1
        }
    }
}

unsafe extern "C" fn release<T: Exports>(owner: *mut PyObject, _view: *mut View) {
    // SAFETY: as in `get`.
    let object = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), owner).cast_into_unchecked::<T>() };
    object.get().release();
}
