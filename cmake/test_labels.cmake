# Labels and the common environment of the tests of this folder; include it after the last add_test.
#
#   family   the first part of the name: unit, property, golden, record, ...
#   browser  draws in a browser
#   slow     what `./dev test --quick` leaves out, with `browser`: what takes long, more than about
#            three seconds in a sanitized build on two cores (measured on 2026-11-23), and whose
#            faults quicker tests mostly find; `golden.commands_*` take 25 s each and stay in
set(slow_tests
  differential.accuracy differential.cut_snapshots differential.exactness differential.guest
  differential.test_block_pictures
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
# Seconds that the longest tests take in ./dev test. A test that sets its own COST keeps it. ctest
# starts them first, in this order, so tests that mostly wait (record) run beside tests that
# compute, and no long test runs alone at the end.
set(seconds_of_tests
  golden.pages=60 project.report=60 golden.terminal=48
  differential.jobs=45 differential.trace_decoder=36 golden.text=34
  golden.commands_1=25 golden.commands_2=25 golden.commands_3=25 golden.commands_4=25
  record.attacks=31 record.dry_run=30 record.killed=29 project.outputs=28 project.bombs=24
  project.fleet_page=22 project.fleet_tune=19 differential.test_pictures=21 inject.test_collect=21 project.layout=19
  fleet.test_job_charts=19 project.site=18 python.endings=20 python.report=17 golden.ci=16 record.places=16
  record.dry_run_hostile=16 record.closing=15 record.ends=15 project.fleet_processes=14
  differential.test_needs=14 golden.charts=13 golden.cases=13 record.identity=13
  record.processes=13)
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(test IN LISTS tests)
  # The limit ends a test that hangs. No test may reach it on a busy machine: it is more than ten
  # times the idle time of the longest test.
  set_property(TEST ${test} PROPERTY TIMEOUT 1800)
  string(REGEX REPLACE "\\..*" "" family ${test})
  set_property(TEST ${test} APPEND PROPERTY LABELS ${family})
  # Threads of PyTorch's OpenMP sleep while they wait. Without this, they spin for a fifth of the
  # CPU time of a dry run.
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT OMP_WAIT_POLICY=PASSIVE)
  if(test IN_LIST absent_tests) # tests/annexes.cmake
    set_property(TEST ${test} PROPERTY DISABLED ON)
  endif()
  get_property(cost TEST ${test} PROPERTY COST)
  if(NOT cost AND ";${seconds_of_tests};" MATCHES ";${test}=([0-9]+);")
    set_property(TEST ${test} PROPERTY COST ${CMAKE_MATCH_1})
  endif()
  if(test IN_LIST slow_tests)
    set_property(TEST ${test} APPEND PROPERTY LABELS slow)
  endif()
endforeach()
