"""Everything that touches the insides of fairseq: registration, checkpoints, data files, and every patch.

`registration.register` applies the permanent patches; the others are applied by the commands that need them.  The last
column lists the versions that need the patch: 0.12.2 of fairseq, 0.12.3.1 of the package fairseq-fixed.

| patch | why | where | fairseq |
|---|---|---|---|
| `checkpoint_utils.load_checkpoint_to_cpu` | fairseq reads a damaged file without notice, and a configuration that changes when it is read again | `checkpoint_reading`, `checkpoint_file` | 0.12.2, 0.12.3.1 |
| `checkpoint_utils.load_model_ensemble_and_task` | fairseq builds whatever a checkpoint names, also parts that evaluate their options; errors do not name the file | `checkpoint_reading`, `allowed_parts` | 0.12.2, 0.12.3.1 |
| `checkpoint_utils.load_checkpoint` | resuming from a damaged state is a traceback, and from another model no error at all | `checkpoint_reading`, `resuming` | 0.12.2, 0.12.3.1 |
| `file_utils.load_archive_file` | an archive can write outside of its folder, and is removed | `archives` | 0.12.2, 0.12.3.1 |
| `torch.serialization.safe_globals` | while a training is resumed, ranks send one another a configuration that torch refuses | `resuming` | 0.12.2, 0.12.3.1 with torch >= 2.6 |
| `checkpoint_utils.torch_persistent_save` | a second attempt to write is appended to what the first has left | `checkpoint_writing` | 0.12.2, 0.12.3.1 |
| `PathManager.copy` | an interrupted copy leaves half a checkpoint_last.pt | `checkpoint_writing` | 0.12.2, 0.12.3.1 |
| `AMPOptimizer.clip_grad_norm` | gradients are divided by the loss scale twice | `amp_optimizer` | 0.12.2, 0.12.3.1 |
| `Trainer.__init__` | half precision on a CPU is a traceback, and --bf16 is taken for a TPU | `precision` | 0.12.2, 0.12.3.1 |
| `torch.manual_seed` | all ranks draw the same noise and dropout | `rank_seed` | 0.12.2, 0.12.3.1 |
| `CRITERION_REGISTRY` | a criterion of our name exists, needs SimulEval 1.0 and cannot train a schedule | `registration` | 0.12.2, 0.12.3.1 |
| `sys.excepthook` | in a command of fairseq a `UserError` is its sentence, in Python a traceback; also sets HYDRA_FULL_ERROR | `command_line` | 0.12.2, 0.12.3.1 |
| `parser.set_defaults` | another scorer, beam, length limit and batch multiple with our task | `command_line`, `tasks` | 0.12.2, 0.12.3.1 |
| `required_batch_size_multiple` | sentences that do not fill a multiple of 8 are dropped | `tasks.checked_data` | 0.12.3.1 |
| `EpochBatchIterator.epoch` | batches depend on the epoch in which they are made, so that a resumed run differs | `batches` | 0.12.3.1 |
| `EpochBatchIterator.next_epoch_itr` | nothing tells a task that a generation has ended, or a scorer which task it scores | `batches` | 0.12.2, 0.12.3.1 |
| `generation.print_step` | the delays are printed without being asked for | `tasks.generators` | 0.12.2, 0.12.3.1 |
| `sys.stdin` | `fairseq-interactive` stops at a line that is not UTF-8 | `command_line` | 0.12.2, 0.12.3.1 |
| `SystemExit` | a training that has ended makes one update more when it is run again | `tasks` | 0.12.2, 0.12.3.1 |
| `sys.argv` | fairseq's parsers look there for --user-dir, whatever arguments they are given | `command_line` | 0.12.2, 0.12.3.1 |
| `logging` | importing fairseq turns on the debugging output of every library and asks for tensorboardX | `command_line`, `registration` | 0.12.2, 0.12.3.1 |
"""  # noqa: E501
