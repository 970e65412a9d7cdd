# Labels and the common environment of the tests of this folder; include it after the last add_test.
#
#   family   the first part of the name: unit, property, golden, record, ...
#   browser  draws in a browser
#   slow     what is in the table below or sets its own COST, except the goldens of commands;
#            `./dev test --quick` leaves out `slow` and `browser`
#
# Seconds that tests take in ./dev test, with sanitizers on two idle cores, if at least about two.
# Those below 13 are estimates of a run on a busy machine. ctest starts the longest ones first, so
# tests that mostly wait (record) run beside tests that compute, and no long test runs alone at the
# end.
set(seconds_of_tests
  project.page_actions=60 project.report=60 project.diff_page=50 golden.terminal=48
  golden.text=34 differential.accuracy=32 record.attacks=31 record.dry_run=30 record.killed=29
  differential.trace_decoder=28 golden.commands_1=25 golden.commands_2=25
  golden.commands_3=25 golden.commands_4=25 project.bombs=24 project.fleet_page=22 project.open=22
  differential.test_pictures=21 inject.test_collect=21 project.parallel=20
  project.outputs=20 python.endings=20
  fleet.test_job_charts=19 project.fleet_tune=19 project.layout=19 project.fleet_folder=18
  project.left_out=18 project.site=18 differential.test_snapshot_events=17
  golden.ci=16 property.test_snapshot_damage=16 record.dry_run_hostile=16 record.places=16
  differential.cut_snapshots=15 python.report=15
  property.test_policies=15 record.closing=15
  record.ends=15 differential.perfetto=20 differential.database=20 golden.sql=15
  differential.guest=14 differential.summaries=14 differential.test_block_pictures=14
  differential.test_needs=14 differential.test_table_pictures=14 differential.test_tune=14
  project.fleet_processes=14 project.json_bounds=14 property.test_policy_oracles=14
  differential.backends=13 golden.cases=13 golden.charts=13 inject.python_stacks=13
  golden.skill=6 fuzz.rows=20 differential.rows=10 project.fleet=13 record.identity=13 record.processes=13 project.hostile_names=12 record.stacks=12
  unit.test_timeline_chart=12 project.schemas=11 record.redact=10
  record.same_name=10 project.completion=8 property.test_analyze_random=8
  property.test_fit_random=8 record.absent=8 differential.jobs=8 golden.pages=8
  differential.test_findings_truth=7 differential.test_phases_truth=7 fleet.test_job_heat_maps=7
  project.dry_run_python=7 project.language=7 property.test_stack_charts=7
  property.test_stack_charts_made=7 record.doctor=7 differential.test_truth=6
  fleet.test_job_tree_chart=6 golden.hash_key_1=6 golden.hash_key_2=6 property.test_trace_damage=6
  differential.test_model_findings=5 differential.test_view_pictures=5
  property.test_pool_routes_random=5 python.recording=5 differential.graph_trees=4
  differential.interposer=4 differential.test_fit_truth=4 differential.test_oom_answer=4
  differential.test_snapshot_start=4 inject.test_collect_disk=4
  python.page=4 record.installed=4 record.ladder=4 differential.folded=3 fuzz.input=3
  project.layers=3 unit.test_database=5 property.test_flamechart_model=3 property.test_live_random=3
  property.test_recorded_twin=3 property.test_report_html=3 property.test_summarize_random=3
  record.counts=3 unit.test_trend_chart=3 differential.cupti=2 differential.exactness=2
  differential.test_module_table=2 fault.test_answer_memory=2 fault.test_job_chart_memory=2
  fleet.test_devices_chart=2 fuzz.cli=2 fuzz.pickle=2 golden.png=2 project.kinds=2
  project.layers_check=2 project.run_workflow=2 property.test_diff_random=2
  property.test_optimal_random=2 property.test_population_random=2 property.test_rank_sets=2
  property.test_summary_file=2 property.test_trace_roundtrip=2 python.ranges=2 record.python=2
  unit.test_foreign_text=2 unit.test_pickle=2 unit.test_text_chart=2 unit.test_xplane=2)
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
    set(cost ${CMAKE_MATCH_1})
    set_property(TEST ${test} PROPERTY COST ${cost})
  endif()
  if(cost AND NOT test MATCHES "^golden\\.commands_")
    set_property(TEST ${test} APPEND PROPERTY LABELS slow)
  endif()
endforeach()
