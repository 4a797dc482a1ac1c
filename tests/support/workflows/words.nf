// The workflow of tasks as Nextflow's: 1 task that splits, 38 that count, 1 that merges. Its launch directory has `text`; it
// makes `counts`. `run` beside this file starts it; params.launch is what starts a task on a node.
nextflow.enable.dsl = 2

step = "${params.launch} sh ${projectDir}/tasks"

process split_text {
    input:
    path text

    output:
    path 'piece.*'

    script:
    "$step split $text"
}

process count_words {
    input:
    path piece

    output:
    path 'counted.*'

    script:
    "$step count $piece ${piece.name.replace('piece', 'counted')}"
}

process add_counts {
    publishDir launchDir, mode: 'copy'

    input:
    path counted

    output:
    path 'counts'

    script:
    "$step merge counts $counted"
}

workflow {
    split_text(Channel.fromPath("$launchDir/text"))
    count_words(split_text.out.flatten())
    add_counts(count_words.out.collect())
}
