"""Building blocks of the models."""

from fairseq_milk.modules.layer_norm_lstm import LayerNormLSTM, LSTMLoop, LSTMState

__all__ = ["LSTMLoop", "LSTMState", "LayerNormLSTM"]
