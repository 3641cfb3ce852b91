"""How Spark and Delta write their small files on a local disk."""

from __future__ import annotations


def test_no_process_is_started_to_look_at_a_file(engine, tmp_path):
    session = engine.isolated()
    java = session.sparkContext._jvm
    settings = session._jsparkSession.sessionState().newHadoopConf()
    folder = java.org.apache.hadoop.fs.Path(tmp_path.as_uri())
    streaming = java.org.apache.spark.sql.execution.streaming
    manager = streaming.checkpointing.CheckpointFileManager.create(folder, settings)

    assert manager.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"
