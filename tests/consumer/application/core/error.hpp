// SPDX-License-Identifier: Apache-2.0
// Found only by mistake: Vitro's headers include their neighbour of this name.
#error "Vitro took the application's core/error.hpp"
