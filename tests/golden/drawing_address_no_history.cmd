drawing_list address no_history/refused.pickle -o -
drawing_list icicle no_history/refused.pickle -o - | grep text
