# Labels and the common environment of the tests of this folder; include it after the last add_test.
#
#   family   the first part of the name: unit, property, golden, record, ...
#   browser  draws in a browser
#   slow     what `./dev test --quick` leaves out, with `browser`: what takes long, more than about
#            three seconds in a sanitized build on two cores (measured on 2026-11-23), and whose
#            faults quicker tests mostly find; `golden` takes 90 s under load and stays in
set(slow_tests
  differential.accuracy differential.cut_snapshots differential.guest differential.test_block_pictures
  differential.real_wheel differential.test_findings_truth differential.test_fit_truth differential.test_model_findings
  differential.test_phases_truth differential.test_pictures differential.test_snapshot_events
  differential.test_table_pictures differential.test_truth differential.test_tune
  differential.trace_decoder fuzz.input fuzz.pickle golden.ci golden.text inject.python_stacks
  inject.test_collect project.bombs project.json_bounds project.layers project.left_out
  project.outputs project.parallel project.schemas property.test_analyze_random
  property.test_fit_random property.test_flamechart_model property.test_policies
  property.test_policy_oracles property.test_pool_routes_random property.test_report_html
  property.test_snapshot_damage property.test_stack_charts property.test_trace_damage record.attacks
  record.closing record.doctor record.ends record.killed record.processes record.stacks
  unit.test_pickle unit.test_timeline_chart)
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(test IN LISTS tests)
  string(REGEX REPLACE "\\..*" "" family ${test})
  set_property(TEST ${test} APPEND PROPERTY LABELS ${family})
  # Threads of PyTorch's OpenMP sleep while they wait: a fifth of the CPU time of a dry run was spinning.
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT OMP_WAIT_POLICY=PASSIVE)
  if(test IN_LIST slow_tests)
    set_property(TEST ${test} APPEND PROPERTY LABELS slow)
  endif()
endforeach()
