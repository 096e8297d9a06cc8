#pragma once

#include "run/capture_input.h"
#include "run/identity.h"
#include "run/model_session.h"
#include "run/text_input.h"
