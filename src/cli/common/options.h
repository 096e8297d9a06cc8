#pragma once

#include "run/options.h"
