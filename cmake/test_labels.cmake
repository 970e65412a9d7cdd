# Labels and the common environment of the tests of this folder; include it after the last add_test.
#
#   family   the first part of the name: unit, property, golden, record, ...
#   browser  draws in a browser
#   slow     what is in the table below or sets its own COST, except the goldens of commands;
#            `./dev test --quick` leaves out `slow` and `browser`
#
# Seconds of long tests in one run of ./dev test, four at a time on two cores. ctest starts the
# longest ones first, so tests that mostly wait (record) run beside tests that compute, and no long
# test runs alone at the end.
set(seconds_of_tests
  project.page_actions=290 project.diff_page=140 project.report=130 record.ring=149
  golden.commands_1=90 project.layout=90 inject.test_collect=87 golden.text=82 record.dry_run=82
  differential.test_pictures=76 golden.commands_2=70 golden.commands_3=70 fleet.test_job_charts=66
  golden.commands_4=64 project.fleet_page=60 differential.accuracy=56 differential.test_needs=52
  project.outputs=52 record.attacks=51 record.killed=51 differential.test_block_pictures=49
  golden.terminal=47 meaning.score=47 differential.trace_decoder=45 project.dry_run_python=44
  differential.job_database=43 differential.test_table_pictures=42 differential.test_tune=41
  differential.test_snapshot_events=39 project.site=39 differential.database=38 project.bombs=37
  meaning.oom=35 property.test_snapshot_damage=34 project.language=31 differential.perfetto=29
  inject.python_stacks=29 differential.kineto=28 differential.nsys=28 fleet.test_job_tree_chart=28
  project.fleet=28 property.test_fit_random=28 project.fleet_tune=27 record.dry_run_hostile=26
  python.report=25 record.plan=24 record.places=23 differential.pprof=22 golden.ci=22
  record.ends=22 record.identity=22 unit.test_timeline_chart=22 fuzz.rows=21 record.stacks=21
  differential.jax_profile=20 property.test_policy_oracles=20 differential.test_truth=19
  differential.backends=18 project.fleet_processes=18 record.processes=18
  differential.test_findings_truth=17 golden.sql=17 project.hostile_names=17
  property.test_policies=17 property.test_trace_damage=17 record.same_name=17 differential.guest=16
  golden.pages=16 project.fleet_folder=16 property.test_stack_charts_made=16 project.schemas=15
  property.test_stack_charts=15 record.closing=15 differential.test_phases_truth=14
  fleet.test_devices_chart=14 project.left_out=14 python.recording=14 fleet.test_job_heat_maps=13
  fuzz.input=13 property.test_analyze_random=13 property.test_live_random=13
  differential.test_view_pictures=12 project.json_bounds=12 differential.jobs=11 python.endings=11
  record.doctor=11 record.redact=11 differential.test_model_findings=10
  property.test_pool_routes_random=10 differential.test_fit_truth=9 fuzz.pickle=9 record.absent=9
  project.layers_check=8 unit.test_database=8 differential.summaries=7 golden.cases=7
  project.open=7 property.test_report_html=7 property.test_summarize_random=7
  unit.test_trend_chart=7 differential.cut_snapshots=6 differential.rows=6
  differential.test_snapshot_start=6 inject.test_collect_disk=6 project.completion=6
  project.run_workflow=6 property.test_flamechart_model=6 record.counts=6 record.installed=6
  record.ladder=6 golden.charts=5 project.kinds=5 property.test_diff_random=5
  property.test_recorded_twin=5 property.test_summary_file=5 unit.test_text_chart=5
  differential.interposer=4 golden.png=4 golden.skill=4 project.layers=4
  property.test_optimal_random=4 property.test_trace_roundtrip=4 python.ranges=4 record.python=4
  unit.test_pickle=4 unit.test_xplane=4 differential.cupti=3 differential.test_module_table=3
  differential.test_oom_answer=3 fuzz.cli=3 golden.hash_key_1=3 golden.hash_key_2=3
  property.test_population_random=3 property.test_rank_sets=3 python.page=3
  unit.test_foreign_text=3 differential.exactness=2 differential.folded=2
  differential.graph_trees=2 fault.test_answer_memory=2 fault.test_job_chart_memory=2
  project.parallel=2)
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
