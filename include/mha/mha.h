/* mha/mha.h: the whole library.
 *
 * Open a model (model.h), turn text into ids (input.h), run it with probes watching (run.h,
 * probe.h), let what they see become arrays and descriptors of heads (trace.h, analysis.h), and
 * write those as tables, arrays and figures (table.h, chart.h), or the model without heads that it
 * can do without (prune.h). Maps that another program dumped stand for a run (maps.h). What
 * attention says about single tokens is in attribute.h. */
#ifndef MHA_MHA_H
#define MHA_MHA_H

#include "mha/analysis.h"
#include "mha/attribute.h"
#include "mha/chart.h"
#include "mha/err.h"
#include "mha/input.h"
#include "mha/maps.h"
#include "mha/model.h"
#include "mha/probe.h"
#include "mha/prune.h"
#include "mha/run.h"
#include "mha/table.h"
#include "mha/trace.h"

#define MHA_VERSION "0.1.0"

#endif
