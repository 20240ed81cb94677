"""What runs in the processes that import torch: launcher, oracle and device.

Python 3.10 clean; needs torch and, for `op_db`, what torch's own test modules import (numpy, expecttest).
"""
