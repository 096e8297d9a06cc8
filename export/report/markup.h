// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "draw/markup.h"
#include "draw/numbers.h"

namespace kvs::inline report {

// Names that every part of the page uses.
using draw::Attributes;
using draw::capitalised;
using draw::counted;
using draw::element;
using draw::Markup;
using draw::shown;
using draw::shown_change;
using draw::shown_count;
using draw::shown_key;
using draw::shown_percent;
using draw::shown_range;
using draw::shown_short;
using draw::shown_tenths;
using draw::text;
using draw::verbatim;

}  // namespace kvs::inline report
